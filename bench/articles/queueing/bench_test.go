package queueing_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/articles/queueing"
)

// BenchmarkSimpleRetryOnly is the article's own size: the original takes 64 CPU s
// for it. The aim is a hundredth of that.
func BenchmarkSimpleRetryOnly(b *testing.B) {
	scenario, err := queueing.Find("simple_retry_only")
	require.NoError(b, err)
	for b.Loop() {
		r, err := queueing.Run(queueing.Setup{Scenario: scenario, Strategy: scenario.Strategies[0], RPS: 300_000, Seed: 1})
		require.NoError(b, err)
		b.ReportMetric(float64(r.Total.Completed), "requests")
	}
}
