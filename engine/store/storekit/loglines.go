package storekit

// MaxLogLines is the largest number of log lines of agents that a store keeps for one run.
const MaxLogLines = 1000
