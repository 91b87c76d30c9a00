package storekit

// MaxLogLines is how many lines of agents' logs are kept of a run.
const MaxLogLines = 1000
