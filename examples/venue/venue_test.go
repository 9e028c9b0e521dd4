//go:build !js

package venue_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/examples/venue"
)

// client is a client of a venue.
type client struct {
	*websocket.Conn
	t *testing.T
}

// open opens a venue, and returns it with the address of its server.
func open(t *testing.T) (*venue.Venue, string) {
	v := venue.New(&venue.Options{Tick: time.Millisecond})
	mux := http.NewServeMux()
	mux.Handle("/feed", v)
	mux.HandleFunc("/token", v.Token)
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	t.Cleanup(v.Close)
	return v, s.URL
}

func token(t *testing.T, url string) string {
	answer, err := http.Get(url + "/token")
	require.NoError(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	http.DefaultClient.CloseIdleConnections()
	return string(text)
}

func dial(t *testing.T, url string) *client {
	ws, _, err := websocket.Dial(t.Context(), url+"/feed", nil)
	require.NoError(t, err)
	ws.SetReadLimit(-1)
	t.Cleanup(func() { ws.CloseNow() })
	return &client{ws, t}
}

func (c *client) send(m venue.Message) {
	require.NoError(c.t, c.Write(c.t.Context(), websocket.MessageText, m.Encode().Data))
}

// next returns the next message that is wanted.
func (c *client) next(wanted func(*venue.Message) bool) venue.Message {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	for {
		_, data, err := c.Read(ctx)
		require.NoError(c.t, err)
		m, err := venue.Decode(data)
		require.NoError(c.t, err)
		if wanted(&m) {
			return m
		}
	}
}

// login logs in, and subscribes to a book, of which it returns the snapshot.
func login(t *testing.T, url, symbol string) (*client, *venue.Book) {
	c := dial(t, url)
	c.send(venue.Message{Op: "login", Token: token(t, url)})
	c.next(func(m *venue.Message) bool { return m.Type == "welcome" && m.Conn > 0 })
	c.send(venue.Message{Op: "subscribe", ID: "1", Books: []string{symbol}})
	b := venue.NewBook()
	snapshot := c.next(func(m *venue.Message) bool { return m.Type == "snapshot" })
	require.Equal(t, symbol, snapshot.Book)
	b.Apply(&snapshot)
	return c, b
}

func TestASnapshotAndItsUpdatesMakeTheBook(t *testing.T) {
	v, url := open(t)
	c, b := login(t, url, "GO-USD")
	for range 100 {
		m := c.next(func(m *venue.Message) bool { return m.Type == "update" })
		require.Equal(t, b.Seq+1, m.Seq)
		b.Apply(&m)
	}
	v.Halt()
	require.Eventually(t, func() bool {
		before := v.Book("GO-USD").Seq
		time.Sleep(10 * time.Millisecond)
		return v.Book("GO-USD").Seq == before
	}, time.Minute, time.Millisecond)
	for end := v.Book("GO-USD"); b.Seq < end.Seq; {
		m := c.next(func(m *venue.Message) bool { return m.Type == "update" })
		b.Apply(&m)
	}
	require.Equal(t, v.Book("GO-USD"), b)
}

func TestATokenServesOnce(t *testing.T) {
	_, url := open(t)
	text := token(t, url)
	for _, good := range []bool{true, false} {
		c := dial(t, url)
		c.send(venue.Message{Op: "login", Token: text})
		_, _, err := c.Read(t.Context())
		if good {
			require.NoError(t, err)
			continue
		}
		require.Equal(t, websocket.StatusPolicyViolation, websocket.CloseStatus(err))
	}
}

func TestTroubleIsMade(t *testing.T) {
	v, url := open(t)
	c, b := login(t, url, "GO-USD")
	v.Skip()
	for gap := false; !gap; {
		m := c.next(func(m *venue.Message) bool { return m.Type == "update" })
		gap = m.Seq > b.Seq+1
		b.Seq = m.Seq
	}
	v.Shout(3 << 20)
	require.Len(t, c.next(func(m *venue.Message) bool { return len(m.Book) > 100 }).Book, 3<<20-len(`{"type":"update","book":""}`))
	c.send(venue.Message{Op: "dance"})
	require.Contains(t, c.next(func(m *venue.Message) bool { return m.Type == "error" }).Error, "dance")
	go v.Shut(websocket.StatusServiceRestart, "later") // c reads, so it ends; Close waits for what it began
	for err := error(nil); websocket.CloseStatus(err) != websocket.StatusServiceRestart; {
		_, _, err = c.Read(t.Context())
		require.True(t, err == nil || websocket.CloseStatus(err) == websocket.StatusServiceRestart, err)
	}
	require.Eventually(t, func() bool { return v.Clients() == 0 }, time.Minute, time.Millisecond)
	require.Equal(t, []venue.End{{Conn: 1, Code: websocket.StatusServiceRestart}}, v.Ends())

	c, _ = login(t, url, "C-USD")
	v.Mute()
	c.send(venue.Message{Op: "ping"})
	other, _ := login(t, url, "C-USD")
	other.send(venue.Message{Op: "ping"})
	other.next(func(m *venue.Message) bool { return m.Type == "pong" })
	v.Cut()
	for err := error(nil); err == nil; {
		var data []byte
		if _, data, err = c.Read(t.Context()); err == nil {
			require.NotContains(t, string(data), "pong")
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"type":"update","book":"x","seq":1,"bids":{"5":1}}`))
	f.Add([]byte(`{"bids":{"x":1}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := venue.Decode(data)
		if err != nil {
			return
		}
		again, err := venue.Decode(m.Encode().Data)
		require.NoError(t, err)
		b := venue.NewBook()
		b.Apply(&again)
	})
}

// Nothing changes after Halt, also if a tick came at the same moment.
func TestNothingChangesAfterHalt(t *testing.T) {
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			v := venue.New(nil)
			defer v.Close()
			time.Sleep(40 * time.Millisecond)
			v.Halt()
			before := map[string]uint64{}
			for _, s := range venue.Symbols {
				before[s] = v.Book(s).Seq
			}
			synctest.Wait()
			for _, s := range venue.Symbols {
				require.Equal(t, before[s], v.Book(s).Seq)
			}
		})
	}
}

func TestATokenInTheHeaderIsALogin(t *testing.T) {
	_, url := open(t)
	for text, code := range map[string]int{token(t, url): http.StatusSwitchingProtocols, "nonsense": http.StatusUnauthorized} {
		ws, answer, err := websocket.Dial(t.Context(), url+"/feed", &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + text}}})
		require.Equal(t, code, answer.StatusCode)
		if err == nil {
			(&client{ws, t}).next(func(m *venue.Message) bool { return m.Type == "welcome" })
			ws.CloseNow()
		}
	}
}

func TestADoorThatIsNotOpenLetsNobodyIn(t *testing.T) {
	v, url := open(t)
	v.SetDoor(venue.Busy)
	_, answer, err := websocket.Dial(t.Context(), url+"/feed", nil)
	require.Error(t, err)
	require.Equal(t, "1", answer.Header.Get("Retry-After"))
	v.SetDoor(venue.Drops)
	_, _, err = dial(t, url).Read(t.Context())
	require.Error(t, err)
	v.SetDoor(venue.Open)
	login(t, url, "GO-USD")
}
