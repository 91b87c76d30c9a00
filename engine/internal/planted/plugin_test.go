package planted

var pluginFaults = []fault{}
