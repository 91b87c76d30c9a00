package planted

var dslFaults = []fault{}
