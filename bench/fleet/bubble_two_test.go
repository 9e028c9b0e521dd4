package fleet_test

import (
	"testing"
	"time"

	"github.com/redial-go/redial/bench/fleet"
)

// The same as with one dial, for the library as it is: a handshake that hangs is kept, and
// another dial begins beside it.
func TestRealConnsWithTwoDialsComeBackAsTheModelSays(t *testing.T) {
	n := manyOr(1_000)
	const second = time.Second
	for name, h := range map[string]fleet.Herd{
		"drop":             {Server: fleet.Server{Queue: fleet.Drop}, Outage: fleet.Outage{Length: 5 * second}},
		"restart, drop":    {Server: fleet.Server{Queue: fleet.Drop}},
		"long backlog":     {Server: fleet.Server{Queue: fleet.Drop, Backlog: n * 3 / 4}, Outage: fleet.Outage{Length: 5 * second}},
		"reject":           {Server: fleet.Server{Queue: fleet.Reject, Backlog: n / 20}, Outage: fleet.Outage{Length: 5 * second}},
		"503, told":        {Server: fleet.Server{Queue: fleet.Busy, Backlog: n / 20, RetryAfter: 3 * second}},
		"unbounded":        {Outage: fleet.Outage{Length: second}},
		"503 for 30 s":     {Outage: fleet.Outage{Length: 30 * second, Down: fleet.Unavailable}, Server: fleet.Server{Queue: fleet.Drop}},
		"hangs for 60 s":   {Outage: fleet.Outage{Length: 60 * second, Down: fleet.Swallowed}, Server: fleet.Server{Queue: fleet.Busy, Backlog: n / 20}},
		"hangs, unbounded": {Outage: fleet.Outage{Length: 60 * second, Down: fleet.Swallowed}},
	} {
		t.Run(name, func(t *testing.T) {
			h.Client, _ = fleet.Named("redial")
			compare(t, h, n)
		})
	}
}
