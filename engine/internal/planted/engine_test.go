package planted

var engineFaults = []fault{}
