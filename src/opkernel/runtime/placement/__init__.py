"""Where operations run; the code for several devices is loaded only if there are several."""
