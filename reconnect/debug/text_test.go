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

// Red is for what does not pass by itself. After a rejection of credentials or an overload a retry follows.
func TestBadgeIsRedForSlowAndStop(t *testing.T) {
	for verdict, want := range map[string]string{
		"": "waiting", "retry": "waiting", "refresh": "waiting", "overload": "waiting",
		"slow": "away", "stop": "away",
	} {
		require.Equal(t, want, (&connInfo{Condition: "away", State: "waiting", Verdict: verdict}).Badge(), verdict)
	}
	require.Equal(t, "away", (&connInfo{Condition: "ended", State: "closed"}).Badge())
	require.Equal(t, "waiting", (&connInfo{Condition: "away", State: "connecting", Verdict: "slow"}).Badge())
}

func TestEachSessionHasAClass(t *testing.T) {
	for want, x := range map[string]sessionInfo{
		"lost": {Up: 1}, "failed": {}, "planned": {Up: 1, Planned: true}, "now": {Up: 1, Live: true},
	} {
		require.Equal(t, want, x.Class())
	}
	require.Equal(t, "opening", (&sessionInfo{Live: true}).Class())
}

func TestLinksHaveKnownParametersOnly(t *testing.T) {
	p := newPage(t, nil)
	body := get(p, "/?show=away+%26&token=planted-secret&utm=planted-secret&all").Body.String()
	require.Contains(t, body, `<a href="?show=away&#43;%26&amp;all&amp;json">JSON</a>`)
	require.NotContains(t, body, "planted-secret")
	require.Contains(t, get(p, "/?conn=7&x=y").Body.String(), `<a href="?conn=7&amp;json">JSON</a>`)
	require.Contains(t, get(p, "/?x=y").Body.String(), `<a href="?json">JSON</a>`)
}

// A query that cannot be understood finds nothing.
func FuzzParseQuery(f *testing.F) {
	for _, s := range []string{
		"", "show=a&all", "conn=7&json", "show=away&json",
		"conn=-1", "conn=99999999999999999999", "show=%00%ff", "conn=x;y",
	} {
		f.Add(s)
	}
	p := New(nil)
	f.Fuzz(func(t *testing.T, raw string) {
		q := parseQuery(&http.Request{URL: &url.URL{RawQuery: raw}})
		require.Zero(t, p.snapshot(q, time.Now()).Found)
		again := parseQuery(&http.Request{URL: &url.URL{RawQuery: strings.TrimPrefix(q.link("all"), "?")}})
		require.Equal(t, []any{q.show, q.one, q.conn, true}, []any{again.show, again.one, again.conn, again.all})
	})
}
