// Package private hides the memory and environment of an engine or agent from other
// processes of the same user.
package private
