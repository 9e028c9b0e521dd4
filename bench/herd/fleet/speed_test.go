package fleet_test

import (
	"testing"
	"time"

	"github.com/redial-go/redial/bench/herd/fleet"
)

// A million connections through ten virtual minutes: at most 10 s and 1 GiB are
// wanted.
func BenchmarkAMillionForTenMinutes(b *testing.B) {
	for _, q := range []fleet.Queue{fleet.Drop, fleet.Unbounded, fleet.Reject, fleet.Busy} {
		b.Run(q.String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				h := fleet.Herd{N: 1_000_000, Watch: 10 * time.Minute, Outage: fleet.Outage{Length: 5 * time.Second}, Server: fleet.Server{Capacity: 500, Queue: q}}
				r, err := fleet.Run(b.Context(), h)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(r.Dials, "dials/client")
			}
		})
	}
}
