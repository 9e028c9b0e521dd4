package subscription_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn/conntest"
)

// dial opens a WebSocket to the venue.
func dial(t *testing.T, n *conntest.Network) *websocket.Conn {
	t.Helper()
	c, _, err := websocket.Dial(t.Context(), "ws://"+addr, through(n))
	require.NoError(t, err)
	t.Cleanup(func() { c.CloseNow() })
	return c
}

// through returns the options of a dial through n.
func through(n *conntest.Network) *websocket.DialOptions {
	return &websocket.DialOptions{
		HTTPClient: &http.Client{Transport: &http.Transport{DialContext: n.DialContext, DisableKeepAlives: true}},
	}
}

// venueScene is a venue with one client.
type venueScene struct {
	*venue
	t      *testing.T
	n      *conntest.Network
	server *conntest.Server
	client *websocket.Conn
}

// withVenue runs a test in virtual time.
func withVenue(t *testing.T, o *venueOptions, test func(t *testing.T, s *venueScene)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &venueScene{venue: newVenue(o), t: t, n: new(conntest.Network)}
		s.server = conntest.NewServer(s.n, addr, s.Serve)
		defer func() { s.client.CloseNow(); s.server.Close() }()
		s.client = dial(t, s.n)
		synctest.Wait() // until the venue has the connection
		test(t, s)
	})
}

// ask sends a request.
func (s *venueScene) ask(op, id string, keys ...string) {
	s.t.Helper()
	data, err := json.Marshal(venueRequest{Op: op, ID: id, Keys: keys})
	require.NoError(s.t, err)
	require.NoError(s.t, s.client.Write(s.t.Context(), websocket.MessageText, data))
	synctest.Wait()
}

// want reads the next message.
func (s *venueScene) want(text string) {
	s.t.Helper()
	_, data, err := s.client.Read(s.t.Context())
	require.NoError(s.t, err)
	require.Equal(s.t, text, string(data))
}

func TestAVenueSendsWhatIsSubscribed(t *testing.T) {
	withVenue(t, nil, func(t *testing.T, s *venueScene) {
		s.ask("subscribe", "1", "b", "a")
		s.want(`{"op":"subscribe","id":"1","keys":["b","a"],"answer":true}`)
		require.Equal(t, [][]string{{"a", "b"}}, s.Held())
		require.Equal(t, 1, s.Publish("a", "5"))
		require.Equal(t, 0, s.Publish("c", "6"))
		s.want(`{"keys":["a"],"data":"5"}`)
		s.ask("unsubscribe", "2", "a")
		s.want(`{"op":"unsubscribe","id":"2","keys":["a"],"answer":true}`)
		require.Equal(t, 0, s.Publish("a", "7"))
		s.ask("subscribe", "3", "b")
		s.ask("nonsense", "4", "b")
		require.Equal(t, venueStats{Connections: 1, Requests: 3, Redundant: 1, Peak: 2}, s.Stats())
		s.client.CloseNow()
		synctest.Wait()
		require.Empty(t, s.Held())
	})
}

// An interval includes its beginning and not its end.
func TestThePolicemanHasARollingWindow(t *testing.T) {
	withVenue(t, &venueOptions{Most: 2, Per: time.Second}, func(t *testing.T, s *venueScene) {
		s.ask("subscribe", "1", "a")
		time.Sleep(600 * time.Millisecond)
		s.ask("subscribe", "2", "b")
		time.Sleep(400 * time.Millisecond)
		s.ask("subscribe", "3", "c")
		time.Sleep(600*time.Millisecond - 1)
		require.Zero(t, s.Stats().Policed)
		s.ask("subscribe", "4", "d")
		require.Equal(t, 1, s.Stats().Policed)
		require.Equal(t, 4, s.Stats().Requests)
		for err := error(nil); ; {
			if _, _, err = s.client.Read(t.Context()); err != nil {
				require.Equal(t, websocket.StatusPolicyViolation, websocket.CloseStatus(err))
				return
			}
		}
	})
}

func TestTheFaultsOfAVenue(t *testing.T) {
	withVenue(t, nil, func(t *testing.T, s *venueScene) {
		s.Next(
			venueFault{Ignored: true}, venueFault{Lost: true}, venueFault{Err: "no"},
			venueFault{Foreign: "99"}, venueFault{Twice: true},
			venueFault{Late: 2 * time.Second}, venueFault{Slow: time.Second},
		)
		s.ask("subscribe", "1", "ignored")
		s.ask("subscribe", "2", "lost")
		s.ask("subscribe", "3", "refused")
		s.want(`{"op":"subscribe","id":"3","keys":["refused"],"error":"no","answer":true}`)
		s.ask("subscribe", "4", "foreign")
		s.want(`{"op":"subscribe","id":"99","answer":true}`)
		s.want(`{"op":"subscribe","id":"4","keys":["foreign"],"answer":true}`)
		s.ask("subscribe", "5", "twice")
		s.want(`{"op":"subscribe","id":"5","keys":["twice"],"answer":true}`)
		s.want(`{"op":"subscribe","id":"5","keys":["twice"],"answer":true}`)
		start := time.Now()
		s.ask("subscribe", "6", "late")
		s.ask("subscribe", "7", "slow")
		require.Equal(t, [][]string{{"foreign", "late", "lost", "twice"}}, s.Held())
		s.want(`{"op":"subscribe","id":"7","keys":["slow"],"answer":true}`)
		require.Equal(t, time.Second, time.Since(start))
		s.want(`{"op":"subscribe","id":"6","keys":["late"],"answer":true}`)
		require.Equal(t, 2*time.Second, time.Since(start))
		s.End("late", "gone")
		s.want(`{"op":"ended","keys":["late"],"error":"gone","answer":true}`)
	})
}

func TestTheWaysInWhichAVenueRefuses(t *testing.T) {
	bad := func(k string) bool { return k == "bad" }
	for name, c := range map[string]struct {
		o    venueOptions
		held []string
		want []string
	}{
		"all": {venueOptions{}, []string{}, []string{
			`{"op":"subscribe","id":"1","keys":["a","bad"],"error":"unknown key","answer":true}`}},
		"partial": {venueOptions{Partial: true}, []string{"a"}, []string{
			`{"op":"subscribe","id":"1","keys":["a","bad"],"error":"unknown key","refused":["bad"],"answer":true}`}},
		"key by key": {venueOptions{KeyByKey: true}, []string{"a"}, []string{
			`{"op":"subscribe","keys":["a"],"answer":true}`, `{"op":"subscribe","keys":["bad"],"error":"unknown key","answer":true}`}},
		"bare": {venueOptions{Bare: true}, []string{}, []string{`{"error":"unknown key","answer":true}`}},
		"mute": {venueOptions{Mute: true}, []string{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c.o.Bad = bad
			withVenue(t, &c.o, func(t *testing.T, s *venueScene) {
				s.ask("subscribe", "1", "a", "bad")
				for _, line := range c.want {
					s.want(line)
				}
				require.Equal(t, [][]string{c.held}, s.Held())
			})
		})
	}
}

func TestAStrictVenueRefusesWhatIsRedundant(t *testing.T) {
	withVenue(t, &venueOptions{Strict: true}, func(t *testing.T, s *venueScene) {
		s.ask("unsubscribe", "1", "a")
		s.want(`{"op":"unsubscribe","id":"1","keys":["a"],"error":"redundant","answer":true}`)
	})
}

// The bad key is not "redundant", though another key of its request is.
func TestEachKeyIsRefusedForItsOwnReason(t *testing.T) {
	o := venueOptions{Strict: true, Bad: func(k string) bool { return k == "bad" }}
	for name, c := range map[string]struct {
		partial, keyByKey bool
		want              []string
	}{
		"partial": {true, false, []string{
			`{"op":"subscribe","id":"2","keys":["bad","a"],"error":"unknown key","refused":["bad","a"],"answer":true}`}},
		"key by key": {false, true, []string{
			`{"op":"subscribe","keys":["bad"],"error":"unknown key","answer":true}`, `{"op":"subscribe","keys":["a"],"error":"redundant","answer":true}`}},
		"all": {false, false, []string{
			`{"op":"subscribe","id":"2","keys":["bad","a"],"error":"unknown key","answer":true}`}},
	} {
		t.Run(name, func(t *testing.T) {
			o := o
			o.Partial, o.KeyByKey = c.partial, c.keyByKey
			withVenue(t, &o, func(t *testing.T, s *venueScene) {
				s.Next(venueFault{Lost: true})
				s.ask("subscribe", "1", "a")
				s.ask("subscribe", "2", "bad", "a")
				for _, line := range c.want {
					s.want(line)
				}
			})
		})
	}
}

// A name belongs to one connection, whenever that subscribes.
func TestTwoConnectionsHaveDifferentTags(t *testing.T) {
	withVenue(t, &venueOptions{Tags: true, KeyByKey: true}, func(t *testing.T, s *venueScene) {
		first := s.client
		s.client = dial(t, s.n)
		synctest.Wait()
		s.ask("subscribe", "1", "a")
		s.want(`{"op":"subscribe","keys":["a"],"tag":"a#2","answer":true}`)
		s.client.CloseNow()
		s.client = first
		s.ask("subscribe", "1", "a", "b")
		s.want(`{"op":"subscribe","keys":["a"],"tag":"a#1","answer":true}`)
		s.want(`{"op":"subscribe","keys":["b"],"tag":"b#1","answer":true}`)
	})
}

// A venue that gives names wants to hear them.
func TestAVenueWithTags(t *testing.T) {
	withVenue(t, &venueOptions{Tags: true}, func(t *testing.T, s *venueScene) {
		s.ask("subscribe", "1", "a")
		s.want(`{"op":"subscribe","id":"1","keys":["a"],"tag":"a#1","answer":true}`)
		s.Publish("a", "5")
		s.want(`{"keys":["a"],"tag":"a#1","data":"5"}`)
		s.ask("unsubscribe", "2", "a#1")
		require.Equal(t, [][]string{{}}, s.Held())
	})
}

func TestTheKeysInTheURLOfAVenue(t *testing.T) {
	withVenue(t, &venueOptions{Bad: func(k string) bool { return k == "bad" }}, func(t *testing.T, s *venueScene) {
		s.server.Next(s.Door(s.server.Accept))
		for keys, want := range map[string]int{"a,b": 101, "a,bad": 400} {
			c, r, _ := websocket.Dial(t.Context(), "ws://feed.test/?keys="+keys, through(s.n))
			require.Equal(t, want, r.StatusCode)
			if c != nil {
				synctest.Wait()
				require.Equal(t, [][]string{{}, {"a", "b"}}, s.Held())
				c.CloseNow()
			}
		}
	})
}

// What is read as a request can be written as one.
func FuzzReadRequest(f *testing.F) {
	f.Add([]byte(`{"op":"subscribe","id":"1","keys":["a"]}`))
	f.Add([]byte(`{"op":"unsubscribe","keys":["a","b"]}`))
	f.Add([]byte(`{"op":"subscribe","keys":[]}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, ok := readRequest(data)
		if !ok {
			return
		}
		again, err := json.Marshal(r)
		require.NoError(t, err)
		same, ok := readRequest(again)
		require.True(t, ok)
		require.Equal(t, r, same)
	})
}
