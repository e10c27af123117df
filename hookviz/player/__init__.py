"""The widget that steps through a trace, in the browser alone; a page that plays is made without it."""
