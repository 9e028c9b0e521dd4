package clients

import (
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redial-go/redial/dialer"
)

// Redis returns a client of go-redis that dials by d, for a d with a MaxElapsed
// below outage.
//
//   - TLSConfig does nothing beside a Dialer: for TLS give d the DialOnce
//     (&tls.Dialer{Config: config}).DialContext.
//   - DialTimeout cuts a dial, with all its tries: 5 s if it is not set.
//   - DialerRetries repeats a dial that failed: 5 times if it is not set. Besides,
//     a command whose dial failed is repeated MaxRetries times (3), and so is one that
//     was sent and got no answer, INCR too.
//   - ContextTimeoutEnabled makes a command respect its context's deadline beyond the
//     dial too.
//
// A command whose context ends leaves its dial behind. Close does not end that:
// MaxElapsed and DialTimeout do.
func Redis(address string, d *dialer.Dialer, outage time.Duration) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr:                  address,
		Dialer:                d.DialContext,
		DialTimeout:           outage,
		DialerRetries:         1,
		ContextTimeoutEnabled: true,
	})
}
