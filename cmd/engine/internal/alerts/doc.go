// Package alerts pushes alerts to a program or a webhook. In: the alerts that the store keeps
// until they are pushed. Out: one HTTP request or one process for each alert. The package
// pushes each alert at least once, and in order. It does not follow redirects, and gives the
// program none of the engine's credentials.
package alerts
