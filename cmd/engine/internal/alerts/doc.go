// Package alerts pushes alerts to a program or a webhook. In: the alerts that the store keeps until
// they are pushed. Out: one HTTP request or one process for each alert. The package pushes the
// alerts in order, and each alert at least once. It does not push an alert that is more than 24
// hours old when the engine starts. It stops trying to push an alert that the receiver refuses
// again and again. It does not follow redirects, and gives the program none of the engine's
// credentials.
package alerts
