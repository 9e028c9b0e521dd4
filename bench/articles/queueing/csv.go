package queueing

import (
	"encoding/csv"
	"io"
	"math"
	"strconv"
	"time"
)

var header = []string{
	"scenario", "strategy", "rps", "seeds", "t_s",
	"amplification_pct", "amplification_sd", "server_ok_pct", "client_done_pct", "client_ok_pct",
	"client_p50_ms", "client_p99_ms", "queue_avg", "queue_max", "cpu_pct",
	"first_ok_pct", "first_failed_pct", "retry_ok_pct", "retry_failed_pct", "offered_pct", "unmet",
}

// WriteCSV writes series with the columns of the calibration series in testdata, and
// those that it lacks after them: numbers to two digits, nothing for what is not defined.
func WriteCSV(w io.Writer, series ...*Series) error {
	c := csv.NewWriter(w)
	_ = c.Write(header) // Flush keeps the error
	for _, s := range series {
		for i := range s.Rows {
			_ = c.Write(s.record(&s.Rows[i]))
		}
	}
	c.Flush()
	return c.Error()
}

func (s *Series) record(r *Row) []string {
	digits := 2
	if s.Bucket%(10*time.Millisecond) != 0 {
		digits = 3
	}
	record := []string{
		s.Scenario.Name, s.Strategy, strconv.Itoa(s.RPS), strconv.Itoa(s.Seeds),
		strconv.FormatFloat(r.T.Seconds(), 'f', digits, 64),
	}
	for _, x := range []float64{
		r.Amplification, r.AmplificationSD, r.ServerOK, r.ClientDone, r.ClientOK,
		r.P50, r.P99, r.QueueAvg, r.QueueMax, r.CPU,
		r.FirstOK, r.FirstFailed, r.RetryOK, r.RetryFailed, r.Offered, r.Unmet,
	} {
		record = append(record, number(x))
	}
	return record
}

func number(x float64) string {
	if math.IsNaN(x) {
		return ""
	}
	return strconv.FormatFloat(math.Round(100*x)/100, 'f', -1, 64)
}
