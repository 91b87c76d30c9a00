package regular

// dontWait has no meaning here: names of pipes are not names of files.
const dontWait = 0
