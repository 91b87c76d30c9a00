package storekit

// MaxLogLines is how many log lines of agents are kept of each run.
const MaxLogLines = 1000
