// Package cli holds what one invocation of the command needs: its streams, global flags,
// environment and logger (App). In: flags and errors. Out: text or JSON on stdout, findings and
// notes on stderr, and the exit code. It uses the streams and the signals of the process, and
// opens neither files nor states.
//
// All output goes through App. So --json, --no-color and the escaping of control characters
// work in every command. App.Finish reports an error, once.
package cli
