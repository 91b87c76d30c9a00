package storekit

// MaxLogLines is how many log lines of agents a store keeps for each run.
const MaxLogLines = 1000
