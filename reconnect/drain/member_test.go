package drain_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/drain"
)

func TestRemoveMayBeCalledTwice(t *testing.T) {
	withGroup(t, soon, func(t *testing.T, s *scene) {
		m := s.add(1, 1)[0]
		m.Remove()
		m.Remove()
		s.drain()
		m.Remove()
		require.Equal(t, drain.Stats{Added: 1, Left: 1}, s.Stats())
		require.Empty(t, s.closes())
	})
}

// The connection often ends because of the closer, before that returns.
func TestRemoveDuringACloseLeavesItToTheCloser(t *testing.T) {
	withGroup(t, drain.Options{Lead: -1, Window: -1}, func(t *testing.T, s *scene) {
		m := s.Add(s.closer(1, 3*time.Second))
		end := s.begin(t.Context())
		time.Sleep(time.Second)
		m.Remove()
		require.Equal(t, drain.Stats{Added: 1}, s.Stats())
		require.NoError(t, end())
		require.Equal(t, 3*time.Second, s.now(), "Drain waits for the closer all the same")
		require.Equal(t, drain.Stats{Added: 1, Closed: 1}, s.Stats())
	})
}

func TestACloserMayRemoveItsMember(t *testing.T) {
	withGroup(t, soon, func(t *testing.T, s *scene) {
		var m *drain.Member
		m = s.Add(func(int, string) error { m.Remove(); return nil })
		s.drain()
		require.Equal(t, drain.Stats{Added: 1, Closed: 1}, s.Stats())
	})
}

// Members that leave from all sides while others close are counted once each.
func TestMembersMayLeaveWhileOthersClose(t *testing.T) {
	withGroup(t, drain.Options{Lead: -1, Window: time.Second}, func(t *testing.T, s *scene) {
		members := s.add(1, 1000)
		end := s.begin(t.Context())
		var leaving sync.WaitGroup
		for i := range 10 {
			leaving.Go(func() {
				for j := range 100 {
					time.Sleep(time.Millisecond)
					members[10*j+i].Remove()
				}
			})
		}
		leaving.Wait()
		require.NoError(t, end())
		synctest.Wait()
		st := s.Stats()
		require.Equal(t, 1000, st.Left+st.Closed)
		require.Len(t, s.closes(), st.Closed)
		require.Zero(t, st.Members)
	})
}
