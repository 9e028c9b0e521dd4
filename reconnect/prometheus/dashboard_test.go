package promredial_test

import (
	"encoding/json"
	"net/url"
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
)

// dashboard is what the tests read of dashboard.json.
type dashboard struct {
	Templating struct {
		List []struct{ Name, Definition string }
	}
	Panels []struct {
		ID      int
		Title   string
		GridPos struct{ X, Y, W, H int }
		Targets []struct{ Expr, LegendFormat string }
	}
}

func readDashboard(t *testing.T) (d dashboard) {
	data, err := os.ReadFile("dashboard.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &d))
	return d
}

// Grafana moves panels that overlap, and shows one of two that have one number.
func TestTheDashboardIsEightPanelsSideBySide(t *testing.T) {
	d := readDashboard(t)
	require.Len(t, d.Panels, 8)
	taken, numbers := map[[2]int]string{}, map[int]bool{}
	for _, p := range d.Panels {
		require.False(t, numbers[p.ID], p.Title)
		numbers[p.ID] = true
		require.LessOrEqual(t, p.GridPos.X+p.GridPos.W, 24, p.Title)
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				cell := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				require.Empty(t, taken[cell], p.Title)
				taken[cell] = p.Title
			}
		}
	}
}

// variable matches what Grafana replaces in a query.
var variable = regexp.MustCompile(`\$\w+`)

// Each query of the dashboard has a result of a real Prometheus with the metrics of a real connection,
// which was lost and cannot come back. The result has the labels of the legend.
func TestEachQueryOfTheDashboardHasAResult(t *testing.T) {
	server := newEcho(t)
	m := newMetrics(t, nil)
	p := startPrometheus(t, m)
	c := openFeed(t, m, server)
	one := func(v float64) bool { return v == 1 }
	p.want(`redial_connections{name="feed", state="ready"}`, one)
	server.kill()
	p.want(`redial_connections{name="feed", state="ready"}`, func(v float64) bool { return v == 0 })
	server.start()
	p.want(`redial_outage_duration_seconds_count{name="feed", planned="false"}`, one)
	require.NoError(t, c.Write(t.Context(), conn.TextMessage("hello")))
	server.kill()
	p.want(`time() - (redial_away_timestamp_seconds{name="feed"} > 0)`, func(v float64) bool { return v > 0 })

	d := readDashboard(t)
	for _, panel := range d.Panels {
		for _, target := range panel.Targets {
			p.wantLabels(target.Expr, target.LegendFormat)
		}
	}
	for _, v := range d.Templating.List {
		if v.Definition != "" {
			query := regexp.MustCompile(`^label_values\((\w+), (\w+)\)$`).FindStringSubmatch(v.Definition)
			require.NotEmpty(t, query, v.Definition)
			p.wantLabels(query[1], "{{"+query[2]+"}}")
		}
	}
}

// wantLabels waits until a query of Grafana has a result with the labels of a legend.
func (p *prom) wantLabels(expr, legend string) {
	p.t.Helper()
	query := variable.ReplaceAllStringFunc(expr, func(v string) string {
		switch v {
		case "$name":
			return ".*"
		case "$__rate_interval", "$__range":
			return "60s"
		}
		p.t.Fatalf("%s: nobody replaces %s", expr, v)
		return ""
	})
	labels := regexp.MustCompile(`\{\{(\w+)\}\}`).FindAllStringSubmatch(legend, -1)
	fits := func(r result) bool {
		return r.Value[1] != "NaN" && !slices.ContainsFunc(labels, func(l []string) bool { return r.Metric[l[1]] == "" })
	}
	var last string
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		var answer struct {
			Data struct{ Result []result }
		}
		last = p.get("/api/v1/query?query="+url.QueryEscape(query), &answer)
		if slices.ContainsFunc(answer.Data.Result, fits) {
			return
		}
	}
	p.t.Fatalf("%s: %s", query, last)
}

// result is one line of the answer to a query.
type result struct {
	Metric map[string]string
	Value  [2]any // the time, and the value as a text
}
