// Package retry retries an operation until it succeeds, within a time limit, within a Budget, and at a gate
// shared with other callers. Waits, verdicts and the limits on an attempt come from package backoff. To
// keep a connection open, use package reconnect.
package retry
