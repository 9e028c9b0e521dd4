package backoff

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// MaxRetryAfter is the longest wait that a server can ask for.
const MaxRetryAfter = time.Hour

// RetryAfter marks err with the time that the server asked to wait, at most [MaxRetryAfter]. It does not change
// the class of err, and otherwise works like the mark of [Permanent].
func RetryAfter(err error, d time.Duration) error {
	if err == nil {
		return nil
	}
	return &delay{mark{err}, d}
}

type delay struct {
	mark
	wait time.Duration
}

func (d *delay) RetryAfter() (time.Duration, bool) { return d.wait, true }

// ParseRetryAfter parses a Retry-After header (RFC 9110, section 10.2.3) as servers write it: a number of
// seconds, possibly fractional; an HTTP date in one of its three forms; or a Unix time in seconds or
// milliseconds. A number from 5e8 on is a Unix time, and from 5e11 on one in milliseconds.
//
// The result counts from now. If the response has a Date, pass that, so that the clocks need not agree. The
// result lies within [0, MaxRetryAfter]: past times and negative numbers give 0. False means that value is none
// of these.
func ParseRetryAfter(value string, now time.Time) (time.Duration, bool) {
	value = strings.TrimSpace(value)
	if strings.Trim(value, "0123456789.-") == "" {
		return retryAfterNumber(value, now)
	}
	for _, layout := range [...]string{
		"Mon, 02 Jan 2006 15:04:05 GMT",
		time.RFC850,
		time.ANSIC,
	} {
		if t, err := time.Parse(layout, value); err == nil {
			return Verdict{Class: ClassRetry, RetryAfter: t.Sub(now)}.Bounded().RetryAfter, true
		}
	}
	return 0, false
}

func retryAfterNumber(value string, now time.Time) (time.Duration, bool) {
	seconds, err := strconv.ParseFloat(value, 64)
	if err != nil && !math.IsInf(seconds, 0) {
		return 0, false
	}
	if seconds >= 5e11 {
		seconds /= 1e3
	}
	if seconds >= 5e8 {
		seconds -= float64(now.Unix())
		seconds -= float64(now.Nanosecond()) / 1e9
	}
	seconds = min(max(seconds, 0), MaxRetryAfter.Seconds())
	return time.Duration(math.Round(seconds * 1e9)), true
}
