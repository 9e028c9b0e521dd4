// Package retry repeats an operation until it succeeds: within a limit of time, within a Budget, and at a
// gate that it shares with others. The waits, the verdicts and the limits on a try come from package
// backoff. To keep a connection open use package reconnect instead.
package retry
