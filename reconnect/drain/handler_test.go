package drain_test

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/drain"
)

// ask makes a request of h.
func ask(h http.Handler) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	return w
}

// hello answers at once.
var hello = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("hello")) })

func TestTheHandlerRefusesFromTheWindowOn(t *testing.T) {
	withGroup(t, drain.Options{}, func(t *testing.T, s *scene) {
		h := s.Handler(hello)
		require.Equal(t, "hello", ask(h).Body.String())
		s.add(1, 100)
		end := s.begin(t.Context())
		time.Sleep(15*time.Second - 1)
		require.Equal(t, "hello", ask(h).Body.String(), "in the lead")
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		for range 2 {
			refused := ask(h)
			require.Equal(t, http.StatusServiceUnavailable, refused.Code)
			require.Equal(t, "close", refused.Header().Get("Connection"))
			require.Equal(t, "draining\n", refused.Body.String())
			require.NoError(t, end())
			end = func() error { return nil }
		}
	})
}

// The clients that are refused at one moment come back at moments of their own.
func TestRetryAfterIsDrawn(t *testing.T) {
	for name, test := range map[string]struct {
		options   drain.Options
		low, high int
	}{
		"default":     {drain.Options{}, 1, 10},
		"only a wait": {drain.Options{Advice: drain.Advice{Wait: 1500 * time.Millisecond}}, 2, 2},
		"spread":      {drain.Options{Advice: drain.Advice{Spread: 30 * time.Second}}, 1, 30},
		"both":        {drain.Options{Advice: drain.Advice{Wait: 12 * time.Second, Spread: 30 * time.Second}}, 12, 42},
	} {
		t.Run(name, func(t *testing.T) {
			test.options.Lead = -1
			withGroup(t, test.options, func(t *testing.T, s *scene) {
				s.drain()
				h, counts := s.Handler(hello), map[int]int{}
				for range 10_000 {
					seconds, err := strconv.Atoi(ask(h).Header().Get("Retry-After"))
					require.NoError(t, err)
					require.GreaterOrEqual(t, seconds, test.low)
					require.LessOrEqual(t, seconds, test.high)
					counts[seconds]++
				}
				even := 10_000 / max(test.high-test.low, 1)
				require.GreaterOrEqual(t, len(counts), test.high-test.low)
				for _, n := range counts {
					require.InDelta(t, even, n, float64(even)/3)
				}
			})
		})
	}
}

func TestReadyEndsWithTheBeginningOfTheDrain(t *testing.T) {
	withGroup(t, drain.Options{}, func(t *testing.T, s *scene) {
		h := s.ReadyHandler()
		require.True(t, s.Ready())
		require.Equal(t, http.StatusOK, ask(h).Code)
		require.Equal(t, "ready\n", ask(h).Body.String())
		end := s.begin(t.Context())
		require.False(t, s.Ready())
		require.Equal(t, http.StatusServiceUnavailable, ask(h).Code)
		require.Equal(t, "draining\n", ask(h).Body.String())
		require.Equal(t, "no-store", ask(h).Header().Get("Cache-Control"))
		require.NoError(t, end())
		require.False(t, s.Ready())
	})
}

// A handler has work to do after its connection was closed.
func TestDrainWaitsForTheHandlers(t *testing.T) {
	withGroup(t, soon, func(t *testing.T, s *scene) {
		closed, saved := make(chan struct{}), time.Duration(0)
		h := s.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			defer s.Add(func(int, string) error { close(closed); return nil }).Remove()
			<-closed
			time.Sleep(9 * time.Second)
			saved = s.now()
		}))
		go ask(h) // Drain waits for it
		synctest.Wait()
		require.Equal(t, s.drain(), saved)
		require.Greater(t, saved, 9*time.Second)
	})
}

func TestAHandlerThatDoesNotReturnIsReported(t *testing.T) {
	withGroup(t, soon, func(t *testing.T, s *scene) {
		end := make(chan struct{})
		h := s.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-end }))
		go ask(h) // ends with the test
		synctest.Wait()
		err := s.Drain(t.Context())
		require.Equal(t, &drain.Error{Handlers: 1}, err)
		require.EqualError(t, err, "drain: handlers still running: 1")
		require.Equal(t, 10*time.Second, s.now())
		close(end)
	})
}

// A handshake that was begun before the window may add its connection when no other is left. That
// one still gets its draw.
func TestAHandlerMayAddAConnectionLate(t *testing.T) {
	withGroup(t, soon, func(t *testing.T, s *scene) {
		h := s.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			time.Sleep(5 * time.Second)
			done := make(chan struct{})
			s.Add(func(int, string) error { close(done); return nil })
			<-done
			time.Sleep(6 * time.Second)
		}))
		go ask(h) // Drain waits for it
		synctest.Wait()
		require.Equal(t, 48205061281*time.Nanosecond, s.drain(), "its draw and 6 s")
		require.Equal(t, 1, s.Stats().Closed)
	})
}
