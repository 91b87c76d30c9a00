package planted

var agentsFaults = []fault{}
