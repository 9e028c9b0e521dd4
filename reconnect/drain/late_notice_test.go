package drain_test

import (
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
