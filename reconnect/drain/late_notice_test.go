package drain_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/drain"
)

// The tests of connections with a notice that are added late.

func TestANoticeDoesNotPutTheCloseBehindTheWindow(t *testing.T) {
	withGroup(t, drain.Options{Lead: -1}, func(t *testing.T, s *scene) {
		s.add(100, 199)
		end := s.begin(t.Context())
		for i := range 59 {
			time.Sleep(time.Second)
			s.AddNotice(s.closer(i, 0), s.noticer(i, 0))
		}
		require.NoError(t, end())
		require.LessOrEqual(t, s.now(), time.Minute)
		require.Len(t, s.closes(), 159)
		require.Len(t, s.notices(), 59)
		require.Less(t, busiest(times(s.closes())), 5, "no burst at the end")
		byMember := map[int]time.Duration{}
		for _, c := range s.closes() {
			byMember[c.member] = c.at
		}
		for _, n := range s.notices() {
			require.Equal(t, byMember[n.member], n.by, "member %d was told its true time", n.member)
		}
	})
}

func TestAClientThatComesAfterTheWindowIsClosedWithoutANotice(t *testing.T) {
	withGroup(t, soon, func(t *testing.T, s *scene) {
		s.drain()
		s.AddNotice(s.closer(1, 0), s.noticer(1, 0))
		synctest.Wait()
		require.Len(t, s.closes(), 1)
		require.Empty(t, s.notices())
	})
}

// A client is ready, and the drain begins, before the handler has added the connection.
func TestAConnectionThatIsAddedWhileTheGroupDrainsIsWarnedFirst(t *testing.T) {
	const window, warn = 8 * time.Second, 2 * time.Second
	for name, added := range map[string]time.Duration{"at once": 0, "early": time.Second, "late": 7 * time.Second} {
		t.Run(name, func(t *testing.T) {
			withGroup(t, drain.Options{Lead: -1, Window: window, Warn: warn}, func(t *testing.T, s *scene) {
				gone := make(chan struct{})
				h := s.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
					time.Sleep(added + time.Millisecond)
					m := s.AddNotice(func(int, string) error { close(gone); return nil }, s.noticer(1, 0))
					defer m.Remove()
					<-gone
				}))
				go ask(h) // Drain waits for it
				synctest.Wait()
				require.NoError(t, s.Drain(t.Context()))
				told := s.notices()[0]
				require.Equal(t, told.by, s.now(), "it was closed when it was told")
				require.LessOrEqual(t, told.by, window)
				if name == "late" {
					require.Equal(t, added+time.Millisecond, told.at)
				} else {
					require.Equal(t, warn, told.by-told.at, "it has as much time as any other")
				}
			})
		})
	}
}
