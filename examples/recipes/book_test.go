//go:build !js

package recipes_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
)

// Each case is what the exchange sends of the book BTC. A book that may be wrong, or that was not
// requested, is not printed.
func TestBookPrintsNoWrongBook(t *testing.T) {
	const (
		answer     = `{"type":"subscribed","book":"BTC"}`
		snapshot   = `{"book":"BTC","type":"snapshot","seq":5,"bids":[[100,1]]}`
		printed    = "BTC 5 map[100:1] map[]" // for snapshot
		empty      = `{"book":"BTC","type":"snapshot"}`
		change5    = `{"book":"BTC","type":"update","seq":5,"bids":[[100,1]]}`
		change6    = `{"book":"BTC","type":"update","seq":6,"bids":[[100,0]]}`
		changed    = "BTC 6 map[] map[]" // for change6 after snapshot
		unnumbered = `{"book":"BTC","type":"update","bids":[[101,1]]}`
		other      = `{"book":"XXX","type":"snapshot","seq":5,"bids":[[100,1]]}`
		otherLater = `{"book":"XXX","type":"update","bids":[[100,1]]}`
	)
	last := strings.Replace(change5, "5", "18446744073709551615", 1)
	wide := strings.Replace(change5, "5", "18446744073709551616", 1) // 65 bits
	short := strings.Replace(snapshot, "100,1", "100", 1)
	long := strings.Replace(snapshot, "100,1", "100,1,1", 1)
	type texts = []string
	for name, scene := range map[string]struct{ texts, want []string }{
		"an answer that names the book":        {texts: texts{answer}},
		"a refusal that names the book":        {texts: texts{`{"error":"unknown book","book":"BTC"}`}},
		"a change without a number":            {texts: texts{unnumbered}},
		"a change without a number, later":     {texts: texts{change5, unnumbered}},
		"a number of 65 bits":                  {texts: texts{wide}},
		"the last number of 64 bits":           {texts: texts{last, snapshot}},
		"a price without lots":                 {texts: texts{short}},
		"a price with too much":                {texts: texts{long}},
		"another book":                         {texts: texts{other, otherLater}},
		"not JSON":                             {texts: texts{`not json`}},
		"no objects":                           {texts: texts{`[]`, `7`, `null`, `{"book":7}`}},
		"a snapshot, and a change of it":       {texts: texts{snapshot, change6}, want: texts{printed, changed}},
		"a snapshot, and a change without seq": {texts: texts{snapshot, unnumbered}, want: texts{printed}},
		"a snapshot, and an answer":            {texts: texts{snapshot, answer}, want: texts{printed}},
		"an empty snapshot":                    {texts: texts{empty}, want: texts{"BTC 0 map[] map[]"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := serveWebSocket(t, func(ctx context.Context, c *websocket.Conn, n int) {
				c.Read(ctx) // the subscription
				if n == 1 {
					send(ctx, c, scene.texts...)
				}
				send(ctx, c, `{"book":"END","type":"snapshot","seq":1}`)
				drain(ctx, c)
			})
			p := start(t, "book", "-url", url, "BTC", "END")
			p.WantLines(append(scene.want, "END 1 map[] map[]")...)
			requireRunning(t, p)
		})
	}
}

// Each case is what the exchange sends of the book BTC, and its answer to the request of a
// snapshot, by the status 200 and by 500.
func TestBooksnapshotPrintsNoWrongBook(t *testing.T) {
	const (
		change     = `{"book":"BTC","first":5,"last":5,"bids":[[100,1]]}`
		two        = `{"book":"BTC","first":5,"last":6,"bids":[[100,1]]}`
		backwards  = `{"book":"BTC","first":9,"last":5,"bids":[[100,1]]}`
		short      = `{"book":"BTC","first":5,"last":5,"bids":[[100]]}`
		unnumbered = `{"book":"BTC","bids":[[100,1]]}`
		other      = `{"book":"XXX","first":5,"last":5,"bids":[[100,1]]}`
		answer     = `{"type":"subscribed","book":"BTC"}`

		snapshot      = `{"book":"BTC","last":4,"bids":[[99,1]]}`
		otherSnapshot = `{"book":"ETH","last":4,"bids":[[99,1]]}`
		shortSnapshot = `{"book":"BTC","last":4,"bids":[[99]]}`
		refusal       = `{"error":"unknown book"}`
	)
	type exchange struct {
		texts    []string
		snapshot string
		want     []string
		perhaps  bool // the first change of texts may be dropped before want is printed
	}
	// Both return an exchange without a book to print.
	sends := func(texts ...string) exchange { return exchange{texts: texts, snapshot: snapshot} }
	fetches := func(snapshot string) exchange {
		return exchange{texts: []string{change}, snapshot: snapshot}
	}
	for name, scene := range map[string]exchange{
		"a change without numbers":        sends(unnumbered),
		"a change without numbers, later": {texts: []string{change, unnumbered}},
		"a change without numbers, later, and a snapshot": {
			texts:    []string{change, unnumbered},
			snapshot: snapshot,
			want:     []string{"BTC 5 map[99:1 100:1] map[]"},
			perhaps:  true,
		},
		"the last number before the first":     sends(backwards),
		"an answer that names the book":        sends(answer),
		"a price without lots":                 sends(short),
		"another book":                         sends(other),
		"a snapshot that names no book":        fetches(refusal),
		"a snapshot of another book":           fetches(otherSnapshot),
		"a snapshot that is not JSON":          fetches(`<html>`),
		"a snapshot with a price without lots": fetches(shortSnapshot),
		"a change and its snapshot": {
			texts:    []string{two},
			snapshot: snapshot,
			want:     []string{"BTC 6 map[99:1 100:1] map[]"},
		},
	} {
		run := func(t *testing.T, status int, want []string) {
			t.Parallel()
			asked := make(chan struct{}, 100) // for a snapshot of BTC
			depth := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.FormValue("book") == "END" {
					json.NewEncoder(w).Encode(map[string]any{"book": "END", "last": 1})
					return
				}
				w.WriteHeader(status)
				w.Write([]byte(scene.snapshot))
				asked <- struct{}{}
			}))
			t.Cleanup(depth.Close)
			url := serveWebSocket(t, func(ctx context.Context, c *websocket.Conn, n int) {
				if n == 1 {
					send(ctx, c, scene.texts...)
				}
				if n == 1 && scene.snapshot != snapshot {
					<-asked
				}
				send(ctx, c, `{"book":"END","first":2,"last":2}`)
				drain(ctx, c)
			})
			p := start(t, "booksnapshot", "-url", url, "-http", depth.URL, "BTC", "END")
			if !scene.perhaps {
				for _, line := range want {
					p.Out.Await(line + "\n")
				}
			}
			p.Out.Await("END 2 map[] map[]\n")
			if lines := linesOf(p.Out.String(), "BTC"); !scene.perhaps || lines != nil {
				require.Equal(t, want, lines)
			}
			requireRunning(t, p)
		}
		t.Run(name, func(t *testing.T) { run(t, 200, scene.want) })
		t.Run(name+", no snapshot", func(t *testing.T) { run(t, 500, nil) })
	}
}
