package plugin

// killOwnGroup does nothing: Windows has no process groups to kill.
func killOwnGroup() {}
