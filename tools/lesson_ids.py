"""The ids of cells that every lesson has."""

BADGES_ID, INSTALL_ID = "badges", "install"
