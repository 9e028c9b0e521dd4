package backoff

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// MaxRetryAfter is the longest wait that a server can ask for.
const MaxRetryAfter = time.Hour

// RetryAfter marks err with the time that the server told us to wait, at most
// [MaxRetryAfter]. The class stays the one that err has, by another mark too. Of several
// times the outermost counts. A marked error prints as err does and unwraps to it. The
// result is nil if err is nil.
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

// ParseRetryAfter reads the value of a Retry-After header (RFC 9110, section 10.2.3) as servers write it: a
// number of seconds, possibly with a fraction; an HTTP date in one of its three forms; or a Unix time in
// seconds or, as some exchanges write it, in milliseconds. From 5e8 on (16 years, or 1985) a number counts
// as a Unix time, and from 5e11 on as one in milliseconds.
//
// The result counts from now. If the same answer has a Date, pass that, because then the clocks need not
// agree. The result lies within [0, MaxRetryAfter]: a past time and a negative number give 0. False means
// that value is none of these.
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
