package debug

import (
	"encoding/json"
	"math"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDurationsAreForPeople(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"0 s": 0, "under 1 ms": 1, "12 ms": 12 * time.Millisecond, "9.9 s": 9999 * time.Millisecond, "119 s": 119 * time.Second,
		"2 min": 2 * time.Minute, "59 min": time.Hour - 1, "3 h 17 min": 3*time.Hour + 17*time.Minute, "2 d 3 h": 51 * time.Hour,
	} {
		require.Equal(t, want, seconds(d).String())
	}
	require.Equal(t, "0 s", seconds(-1).String())
}

func TestSecondsAreNumbersInJSON(t *testing.T) {
	data, err := json.Marshal(seconds(1250 * time.Millisecond))
	require.NoError(t, err)
	require.Equal(t, "1.25", string(data))
	var s seconds
	require.NoError(t, json.Unmarshal(data, &s))
	require.Equal(t, seconds(1250*time.Millisecond), s)
	require.Error(t, json.Unmarshal([]byte(`"x"`), &s))
}

func TestNumbersAreForPeople(t *testing.T) {
	require.Equal(t, []string{"0", "999", "1,000", "-12,345", "1,234,567"}, []string{number(0), number(999), number(1000), number(-12345), number(uint64(1234567))})
	require.Equal(t, []string{"999 B", "1.0 kB", "10 kB", "1.0 MB", "16 MB"}, []string{bytes(999), bytes(1000), bytes(9960), bytes(999_600), bytes(16_000_000)})
	require.Equal(t, "18 EB", bytes(math.MaxUint64))
}

func TestPushKeepsTheNewest(t *testing.T) {
	var list []int
	for i := range 10 {
		list = push(list, i, 4)
	}
	require.Equal(t, []int{6, 7, 8, 9}, list)
	require.Equal(t, 4, cap(list))
}

func TestABarHasAColumnForEachSession(t *testing.T) {
	c := connInfo{AwaySince: time.Now(), bar: []sessionInfo{
		{Up: seconds(time.Hour), Away: 0, Reason: "refused"}, {Up: 0, Away: 0}, {Up: 1, Away: 1, Planned: true}, {Up: seconds(math.MaxInt64), Live: true},
	}}
	svg := string(c.Bar())
	for _, class := range []string{"up", "now", "planned", "failed", "away", "gone"} {
		require.Equal(t, 1, strings.Count(svg, `class="`+class+`"`), class)
	}
	require.Contains(t, svg, "4 sessions, those before were ready for 1 h 0 min and away for under 1 ms, 1 never ready")
	require.Contains(t, svg, "v-20", "no column is higher than the drawing")
}

// A query that is of no use shows the list.
func FuzzParseQuery(f *testing.F) {
	for _, s := range []string{"", "q=a&page=2", "conn=7&json", "show=away&live", "page=-1", "page=99999999999999999999", "q=%00%ff", "conn=x;y"} {
		f.Add(s)
	}
	p := New(nil)
	f.Fuzz(func(t *testing.T, raw string) {
		q := parseQuery(&http.Request{URL: &url.URL{RawQuery: raw}})
		require.LessOrEqual(t, len(q.text), maxText)
		s := p.snapshot(q, time.Now())
		require.Equal(t, []int{1, 1, 0}, []int{s.Page, s.Pages, s.Found})
		again := parseQuery(&http.Request{URL: &url.URL{RawQuery: strings.TrimPrefix(q.link(3), "?")}})
		require.Equal(t, []any{q.text, q.show, 3}, []any{again.text, again.show, again.page})
	})
}
