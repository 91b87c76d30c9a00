// Package process names the process of this command, and says whether a named process has ended. In:
// the address of an engine. Out: true only if it is sure that the process has ended. It imports no
// other package of the module.
package process
