package tiers

import (
	"encoding/csv"
	"io"
	"math"
	"strconv"
	"time"
)

// WriteCSV writes results, a line per bucket and tier: numbers to two digits, nothing for what
// is not defined.
func WriteCSV(w io.Writer, results ...*Result) error {
	c := csv.NewWriter(w)
	_ = c.Write([]string{ // Flush keeps the error
		"scenario", "strategy", "rps", "seed", "t_s", "let_in_pct", "arrived", "ended", "succeeded", "turned_away",
		"tier", "load_pct", "completed", "refused", "queue_max",
	})
	for _, r := range results {
		for i := range r.Buckets {
			for tier := range r.Setup.Scenario.Tiers {
				_ = c.Write(r.record(i, tier))
			}
		}
	}
	c.Flush()
	return c.Error()
}

func (r *Result) record(bucket, tier int) []string {
	b, s, y := &r.Buckets[bucket], &r.Setup.Scenario, &r.Setup.Strategy
	at, t := time.Duration(bucket)*s.Bucket, &b.Tiers[tier]
	record := []string{
		s.Name, y.Name, strconv.Itoa(r.Setup.RPS), strconv.FormatUint(r.Setup.Seed, 10),
		number(at.Seconds()), number(100 * y.Admission.Admits(at)),
	}
	for _, n := range []int{b.Arrived, b.Ended, b.Succeeded, b.Turned} {
		record = append(record, strconv.Itoa(n))
	}
	record = append(record, s.Tiers[tier].Name, number(r.Load(bucket, tier)))
	for _, n := range []int{t.Completed, t.Refused, t.Queue} {
		record = append(record, strconv.Itoa(n))
	}
	return record
}

func number(x float64) string { return strconv.FormatFloat(math.Round(100*x)/100, 'f', -1, 64) }
