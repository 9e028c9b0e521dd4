package caller

import (
	"math"

	"github.com/redial-go/redial/reconnect/budget"
)

// grpc returns the throttling of gRFC A6, "gRPC Retry Design", in thousandths of its tokens: no proportional
// budget but a breaker, which stops retries from a share of failures of ratio/(1+ratio) on. A maxTokens
// outside of 1 to 1000 is cut to that range, and a ratio outside of 0.001 to maxTokens to that range.
func grpc(maxTokens int, ratio float64) *budget.Options {
	maxTokens = min(max(maxTokens, 1), 1000)
	add := 1
	if ratio > 0.001 { // and a number
		add = int(math.Round(min(ratio, float64(maxTokens)) * 1000))
	}
	return &budget.Options{
		Capacity: 1000 * maxTokens,
		Reserve:  500 * maxTokens,
		Retry:    -1,
		Failure:  1000,
		First:    add,
		Again:    add,
	}
}

// aws returns the bucket of aws-sdk-go-v2's standard mode, with a timeout's price after throttling too, because a
// verdict does not tell them apart.
func aws() *budget.Options {
	return &budget.Options{Capacity: 500, Retry: 5, AfterOverload: 10, First: 1, Again: -1}
}

// aws2026 returns the bucket of aws-sdk-go-v2's mode of 2026, with throttling's price after a timeout too.
func aws2026() *budget.Options {
	return &budget.Options{Capacity: 500, Retry: 14, AfterOverload: 5, First: 1, Again: -1}
}
