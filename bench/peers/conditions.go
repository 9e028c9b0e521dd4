package peers

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Conditions are those of a measurement.
type Conditions struct {
	Date    string     // on which it began, in UTC
	Machine string     // system, Go and processors
	Load    [2]float64 // the load average of the last minute before it and after it; 0: unknown
	Took    string     // how long it took
}

// conditionsOf returns the conditions of what began at a time, with a load, and has just ended.
func conditionsOf(began time.Time, load float64) Conditions {
	return Conditions{
		Date:    began.UTC().Format(time.DateOnly),
		Machine: fmt.Sprintf("%s/%s, %s, %d processors", runtime.GOOS, runtime.GOARCH, runtime.Version(), runtime.NumCPU()),
		Load:    [2]float64{load, loadAverage()},
		Took:    time.Since(began).Round(time.Second).String(),
	}
}

// text says all of it.
func (c Conditions) text() string {
	return fmt.Sprintf("%s, %s, load average %s before and %s after; took %s", c.Date, c.Machine, loadText(c.Load[0]), loadText(c.Load[1]), c.Took)
}

// loads says what several measurements have in common, and between what their loads were.
func loads(rows []*Result) string {
	var parts []string
	least, most := rows[0].Measured.Load[0], 0.0
	for _, r := range rows {
		for _, part := range []string{r.Measured.Date, r.Measured.Machine} {
			if !slices.Contains(parts, part) {
				parts = append(parts, part)
			}
		}
		least, most = min(least, slices.Min(r.Measured.Load[:])), max(most, slices.Max(r.Measured.Load[:]))
	}
	return fmt.Sprintf("%s, load average %s to %s", strings.Join(parts, ", "), loadText(least), loadText(most))
}

func loadText(load float64) string {
	if load == 0 {
		return "unknown"
	}
	return decimal(load, 2)
}

// loadAverage is the load average of the last minute, 0 if it is unknown.
func loadAverage() float64 {
	text, err := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(text), " ")
	load, failed := strconv.ParseFloat(first, 64)
	if err != nil || failed != nil {
		return 0
	}
	return load
}
