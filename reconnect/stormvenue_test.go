package reconnect_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/redial-go/redial/dialer"
)

// Promises 1, 3, 5, 6, 7, 8 and 11, whatever happens. REDIAL_SEEDS is how many seeds; one
// of them is run again with -run 'Storm/^17$', though the scheduler is not repeated.
func TestAStormIsSurvived(t *testing.T) {
	eachSeed(t, 100, func(t *testing.T, seed uint64) {
		w := &stormVenue{storm: newStorm(seed)}
		inVenue(t, w.serve, w.run)
	})
}

// stormVenue is a storm over real WebSockets.
type stormVenue struct{ *storm }

func (w *stormVenue) run(t *testing.T, v *venue) {
	r := w.stream(2)
	v.dialer.Conn.WriteTimeout = time.Second + upTo(r, 10*time.Second)
	if r.IntN(4) == 0 {
		v.dialer.Compression = dialer.CompressionContextTakeover
	}
	v.Options = &websocket.AcceptOptions{InsecureSkipVerify: true, CompressionMode: websocket.CompressionContextTakeover, CompressionThreshold: 64}
	sky := &venueWeather{venue: v}
	defer sky.farewells.Wait()
	w.rage(t, v.network, venueAddr, v.dialer, sky)
}

// serve is the server: it wants a login, counts to the client and notes what
// the client says.
func (w *stormVenue) serve(ctx context.Context, c *websocket.Conn, _ *http.Request) {
	say := func(data string) error { return c.Write(ctx, websocket.MessageText, []byte(data)) }
	_, login, err := c.Read(ctx)
	if err != nil {
		return
	}
	session, ok := w.admit(string(login), say)
	if !ok {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	var counting sync.WaitGroup
	counting.Go(func() { w.talk(session, say) })
	defer counting.Wait()
	defer cancel()
	c.SetReadLimit(1 << 20)
	for {
		_, message, err := c.Reader(ctx)
		if err != nil {
			return
		}
		data, err := readAll(ctx, c, message, w.doubtful)
		w.hear(data, err)
	}
}
