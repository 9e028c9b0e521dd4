package promredial_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	promredial "github.com/redial-go/redial/reconnect/prometheus"
)

// A real Prometheus sees a loss and the return of a real connection.
func TestPrometheusSeesALossAndTheReturn(t *testing.T) {
	server := newEcho(t)
	m := newMetrics(t, nil)
	p := startPrometheus(t, m)
	c := openFeed(t, m, server)

	p.want(`redial_connections{name="feed", state="ready"}`, func(v float64) bool { return v == 1 })
	require.NoError(t, c.Write(t.Context(), conn.TextMessage("hello")))
	p.want(`redial_received_bytes_total{name="feed"}`, func(v float64) bool { return v == 5 })
	p.want(`redial_seams_total{name="feed", planned="false"}`, func(v float64) bool { return v == 0 })

	server.kill()
	p.want(`redial_connections{name="feed", state="ready"}`, func(v float64) bool { return v == 0 })
	p.want(`time() - (redial_away_timestamp_seconds{name="feed"} > 0)`, func(v float64) bool { return v > 0 && v < patience.Seconds() })
	p.want(`redial_dials_total{name="feed", outcome="failed", reason="refused"}`, func(v float64) bool { return v > 0 })

	server.start()
	p.want(`redial_connections{name="feed", state="ready"}`, func(v float64) bool { return v == 1 })
	p.want(`redial_away_timestamp_seconds{name="feed"}`, func(v float64) bool { return v == 0 })
	p.want(`redial_seams_total{name="feed", planned="false"}`, func(v float64) bool { return v == 1 })
	p.want(`redial_outage_duration_seconds_count{name="feed", planned="false"}`, func(v float64) bool { return v == 1 })
	p.want(`max_over_time(redial_away_timestamp_seconds{name="feed"}[10m])`, func(v float64) bool { return v > 0 })
	p.wantHealthyRules(8)
}

// The alert for a connection that has given up fires though the first scrape came later.
func TestPrometheusAlertsOfAConnThatGaveUpBeforeTheFirstScrape(t *testing.T) {
	m := newMetrics(t, nil)
	c, err := reconnect.New(reconnect.DialFunc(func(context.Context) (conn.Conn, error) {
		return nil, backoff.Permanent(errors.New("the key was revoked"))
	}), &reconnect.Options{Layers: []*reconnect.Layer{m.Layer("feed")}})
	require.NoError(t, err)
	<-c.Done()
	p := startPrometheus(t, m)
	p.want(`sum(ALERTS{alertname="RedialEnded", name="feed", alertstate="firing"})`, func(v float64) bool { return v == 1 })
}

// prom is a real Prometheus, with alerts.yml.
type prom struct {
	t    *testing.T
	base string
}

// openFeed opens a measured connection to server, which dials again soon.
func openFeed(t *testing.T, m *promredial.Metrics, server *echo) *reconnect.Conn {
	t.Helper()
	c, err := reconnect.New(&dialer.WebSocket{URL: server.url()}, &reconnect.Options{
		Layers: []*reconnect.Layer{m.Layer("feed")},
		Run:    reconnect.RunOptions{Policy: &backoff.Exponential{Base: 10 * time.Millisecond, Cap: 100 * time.Millisecond}},
	})
	require.NoError(t, err)
	t.Cleanup(func() { c.Close(); <-c.Done() })
	return c
}

// startPrometheus starts a Prometheus that asks for the metrics every 200 ms.
func startPrometheus(t *testing.T, m *promredial.Metrics) *prom {
	t.Helper()
	path, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("prometheus is not there")
	}
	r := prometheus.NewRegistry()
	r.MustRegister(m)
	target := httptest.NewServer(promhttp.HandlerFor(r, promhttp.HandlerOpts{}))
	t.Cleanup(target.Close)
	rules, err := filepath.Abs("alerts.yml")
	require.NoError(t, err)
	dir := t.TempDir()
	config := fmt.Sprintf("global: {scrape_interval: 200ms, evaluation_interval: 200ms}\nrule_files: [%q]\n"+
		"scrape_configs:\n- job_name: test\n  static_configs: [{targets: [%q]}]\n", rules, strings.TrimPrefix(target.URL, "http://"))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(config), 0o600))
	for range 5 {
		p := &prom{t: t, base: "http://" + freeAddr(t)}
		if p.run(path, dir) {
			return p
		}
	}
	t.Fatal("prometheus did not start")
	return nil
}

// run starts the program, and waits until it answers. It reports false if it ended, such as because
// something else has taken its port.
func (p *prom) run(path, dir string) bool {
	log, err := os.Create(filepath.Join(dir, "log"))
	require.NoError(p.t, err)
	defer log.Close()
	cmd := exec.Command(path, "--config.file="+filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+strings.TrimPrefix(p.base, "http://"))
	cmd.Stdout, cmd.Stderr = log, log
	require.NoError(p.t, cmd.Start())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = cmd.Wait() }() // joined below
	p.t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended })
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		select {
		case <-ended:
			return false
		case <-time.After(50 * time.Millisecond):
		}
		if answer, err := client.Get(p.base + "/-/ready"); err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return true
			}
		}
	}
	text, _ := os.ReadFile(log.Name())
	p.t.Fatalf("prometheus does not answer: %s", text)
	return false
}

// client keeps no connections, so that none is left after a test.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}

func freeAddr(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

// want waits until a query has one result, which ok accepts.
func (p *prom) want(query string, ok func(float64) bool) {
	p.t.Helper()
	var last string
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		var answer struct {
			Data struct {
				Result []struct{ Value [2]any }
			}
		}
		last = p.get("/api/v1/query?query="+url.QueryEscape(query), &answer)
		if r := answer.Data.Result; len(r) == 1 {
			text, _ := r[0].Value[1].(string)
			if v, err := strconv.ParseFloat(text, 64); err == nil && ok(v) {
				return
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	p.t.Fatalf("%s: %s", query, last)
}

// wantHealthyRules waits until all alerts have been evaluated without an error.
func (p *prom) wantHealthyRules(n int) {
	p.t.Helper()
	var last string
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		var answer struct {
			Data struct {
				Groups []struct {
					Rules []struct{ Name, Health string }
				}
			}
		}
		last = p.get("/api/v1/rules", &answer)
		healthy := 0
		for _, g := range answer.Data.Groups {
			for _, r := range g.Rules {
				if r.Health == "ok" {
					healthy++
				}
			}
		}
		if healthy == n {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	p.t.Fatalf("rules: %s", last)
}

// get reads an answer, and returns it as text, too.
func (p *prom) get(path string, into any) string {
	answer, err := client.Get(p.base + path)
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	var raw json.RawMessage
	if err := json.NewDecoder(answer.Body).Decode(&raw); err != nil {
		return err.Error()
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return err.Error()
	}
	return string(raw)
}
