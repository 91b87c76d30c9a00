package regular

// dontWait is not needed on Windows, where a file name cannot name a pipe.
const dontWait = 0
