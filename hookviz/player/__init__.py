"""What the browser gets: the content of a player, the widget, and pages that play without a kernel."""
