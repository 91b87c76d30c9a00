package plugin

// killOwnGroup does nothing, because Windows has no process groups that can be killed.
func killOwnGroup() {}
