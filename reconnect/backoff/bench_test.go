package backoff_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
)

// sink keeps the compiler from leaving out what is measured.
var sink time.Duration

// The budget of issue 2: Next of a doubling policy costs at most three times
// one random draw (draws/op), and no policy allocates.
func BenchmarkNext(b *testing.B) {
	for name, p := range map[string]backoff.Policy{
		"full":         &backoff.Exponential{},
		"equal":        &backoff.Exponential{Jitter: backoff.JitterEqual},
		"proportional": &backoff.Exponential{Jitter: backoff.JitterProportional},
		"factor1.6":    &backoff.Exponential{Factor: 1.6},
		"decorrelated": &backoff.Decorrelated{},
		"normal":       &backoff.Normal{},
		"first":        backoff.First(time.Second, &backoff.Exponential{}),
		"default":      backoff.Default(),
	} {
		b.Run(name, func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 2))
			b.ReportAllocs()
			start := time.Now()
			for i := range b.N {
				sink += time.Duration(r.Int64N(int64(time.Second) << (i & 3)))
			}
			draw := time.Since(start)
			b.ResetTimer()
			for i := range b.N {
				s, _ := p.Next(backoff.Attempt{N: i & 7, Prev: time.Second}, r)
				sink += s.Wait
			}
			b.ReportMetric(float64(b.Elapsed())/float64(draw), "draws/op")
		})
	}
}
