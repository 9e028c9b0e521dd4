package strict

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type outer struct {
	Name string `json:"name"`
	named
	Parts []part          `json:"parts"`
	One   *part           `json:"one"`
	Waits []time.Duration `json:"waits"`
	other int
}

type named struct {
	On bool `json:"on"`
}

type part struct {
	Count int           `json:"count"`
	Share float64       `json:"share"`
	Wait  time.Duration `json:"wait"`
}

func TestAFileIsRead(t *testing.T) {
	var x outer
	require.NoError(t, Decode([]byte(`{"name": "a", "on": true, "one": {"share": 0.5},
		"parts": [{"count": 2, "wait": "100ms"}, {"wait": 1.5}], "waits": ["1s", 2]}`), &x)) // a number is of seconds
	require.Equal(t, outer{
		Name: "a", named: named{On: true}, One: &part{Share: 0.5},
		Parts: []part{{Count: 2, Wait: 100 * time.Millisecond}, {Wait: 1500 * time.Millisecond}},
		Waits: []time.Duration{time.Second, 2 * time.Second},
	}, x)
}

func TestAMistakeInAFileIsNamedWithItsPlace(t *testing.T) {
	for text, want := range map[string]string{
		"{\n\"nam\": 1}":                     `line 2: there is no key "nam" (is it "name"?): there are name, on, parts, one, waits`,
		"{\"parts\": [{},\n{\"cuont\": 1}]}": `line 2: parts: number 2: there is no key "cuont" (is it "count"?): there are count, share, wait`,
		`{"other": 1}`:                       `line 1: there is no key "other": there are name, on, parts, one, waits`,
		`{"name": 1}`:                        `line 1: name: want a text, not 1`,
		`{"on": "yes"}`:                      `line 1: on: want true or false, not yes`,
		`{"one": {"count": 1.5}}`:            `line 1: one: count: want a whole number, not 1.5`,
		`{"one": {"count": 99999999999}}`:    `line 1: one: count: want a whole number, not 99999999999`,
		`{"one": {"share": "a"}}`:            `line 1: one: share: want a number, not a`,
		`{"one": {"share": 1e999}}`:          `line 1: one: share: want a number, not 1e999`,
		`{"one": {"wait": "soon"}}`:          `line 1: one: wait: "soon" must be a time, such as 1.5s or 20, which is 20s`,
		`{"one": {"wait": -1}}`:              `line 1: one: wait: "-1" must be a time, such as 1.5s or 20, which is 20s`,
		`{"one": {"wait": true}}`:            `line 1: one: wait: want a time such as "100ms", not true`,
		`{"one": []}`:                        `line 1: one: want an object, not [`,
		`{"parts": {}}`:                      `line 1: parts: want a list, not {`,
		`{"name": "a", "name": "b"}`:         `line 1: name is given twice`,
		`{"name": "a"} {}`:                   `line 1: there is more after the end of the object`,
		`{"name": "a"`:                       `line 1: the file ends too early`,
		``:                                   `line 1: the file ends too early`,
		`{"name" "a"}`:                       `line 1: name: invalid character '"' after object key`,
		`{"name": null}`:                     `line 1: name: want a text, not <nil>`,
	} {
		var x outer
		require.EqualError(t, Decode([]byte(text), &x), want, text)
	}
	require.Zero(t, outer{}.other)
}

// No text may end the program, and what is read is read again in the same way.
func FuzzDecode(f *testing.F) {
	for _, text := range []string{`{"name": "a", "parts": [{"count": 2, "wait": "1s"}]}`, `{"one": {"share": 1e3}, "waits": [1, "2m"]}`, `[`, `{"name":`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var x, again outer
		err := Decode(text, &x)
		require.Equal(t, err, Decode(text, &again))
		require.Equal(t, x, again)
	})
}
