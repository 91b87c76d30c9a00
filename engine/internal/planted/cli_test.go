package planted

var cliFaults = []fault{}
