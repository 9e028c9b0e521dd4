package backoff_test

import (
	"testing"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
)

// sink keeps the compiler from leaving out what is measured.
var sink time.Duration

// Next of a doubling policy is to cost at most three times one random draw, and no policy
// is to allocate. Draws and policies are measured in turns, and draws/op is the ratio.
func BenchmarkNext(b *testing.B) {
	for name, p := range map[string]backoff.Policy{
		"full":         &backoff.Exponential{},
		"equal":        &backoff.Exponential{Jitter: backoff.JitterEqual},
		"proportional": &backoff.Exponential{Jitter: backoff.JitterProportional},
		"factor1.6":    &backoff.Exponential{Factor: 1.6},
		"first":        backoff.First(time.Second, &backoff.Exponential{}),
		"default":      backoff.Default(),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			const turn = 1000
			var drawing, asking time.Duration
			r := seeded()
			for range b.N/turn + 1 {
				began := time.Now()
				for i := range turn {
					sink += time.Duration(r.Int64N(int64(time.Second) << (i & 3)))
				}
				between := time.Now()
				for i := range turn {
					s, _ := p.Next(backoff.History{N: i & 7, Prev: time.Second}, r)
					sink += s.Wait
				}
				drawing += between.Sub(began)
				asking += time.Since(between)
			}
			n := float64((b.N/turn + 1) * turn)
			b.ReportMetric(float64(asking)/n, "ns/op")
			b.ReportMetric(float64(drawing)/n, "ns/draw")
			b.ReportMetric(float64(asking)/float64(drawing), "draws/op")
		})
	}
}
