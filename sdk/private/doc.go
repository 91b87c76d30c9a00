// Package private keeps what an engine or an agent knows from other processes of the
// same user.
package private
