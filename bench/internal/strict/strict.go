// Package strict reads JSON files that people write: each key must be known.
package strict

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/redial-go/redial/bench/internal/cli"
	"github.com/redial-go/redial/bench/internal/pick"
)

// Decode reads one JSON object into the struct that into points to. Its fields are structs, pointers
// to structs, slices, texts, numbers, booleans and times; a key is the field's tag "json", and the
// fields of an embedded struct are the struct's own. A time is a text such as "100ms", or a number of
// seconds. An error names the line, the way to the value, and what is wrong with it: a key that is not
// known is named with the key that is nearest, and with all that there are.
func Decode(text []byte, into any) error {
	d := &decoder{json.NewDecoder(bytes.NewReader(text))}
	d.UseNumber()
	err := d.value(reflect.ValueOf(into).Elem())
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("there is more after the end of the object")
		}
	}
	if err != nil {
		return fmt.Errorf("line %d: %w", 1+bytes.Count(text[:d.InputOffset()], []byte("\n")), err)
	}
	return nil
}

// File returns what read makes of a file. An error of read is said to be of that file.
func File[T any](name string, read func(text []byte) (T, error)) (T, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		var none T
		return none, err
	}
	v, err := read(text)
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return v, err
}

type decoder struct{ *json.Decoder }

// token returns the next token. A file that ends too early is an error with other words.
func (d *decoder) token() (json.Token, error) {
	t, err := d.Token()
	if errors.Is(err, io.EOF) {
		err = errors.New("the file ends too early")
	}
	return t, err
}

var timeType = reflect.TypeFor[time.Duration]()

// value reads the next value into v.
func (d *decoder) value(v reflect.Value) error {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return d.value(v.Elem())
	case reflect.Struct:
		return d.object(v)
	case reflect.Slice:
		return d.list(v)
	}
	t, err := d.token()
	if err != nil {
		return err
	}
	switch x := t.(type) {
	case string:
		if v.Kind() == reflect.String {
			v.SetString(x)
			return nil
		}
		if v.Type() == timeType {
			return setTime(v, x)
		}
	case bool:
		if v.Kind() == reflect.Bool {
			v.SetBool(x)
			return nil
		}
	case json.Number:
		if v.Type() == timeType {
			return setTime(v, x.String())
		}
		if done, err := setNumber(v, x); done {
			return err
		}
	}
	return fmt.Errorf("want %s, not %v", kindOf(v), t)
}

// setTime sets a time, which is negative only by mistake.
func setTime(v reflect.Value, text string) error {
	t, err := cli.Time(text)
	if err != nil {
		return fmt.Errorf("%q %w", text, err)
	}
	v.SetInt(int64(t))
	return nil
}

// setNumber sets a number, if v is one.
func setNumber(v reflect.Value, x json.Number) (done bool, err error) {
	switch v.Kind() {
	case reflect.Int:
		n, err := x.Int64()
		if err != nil || n < math.MinInt32 || n > math.MaxInt32 {
			return true, fmt.Errorf("want a whole number, not %v", x)
		}
		v.SetInt(n)
	case reflect.Float64:
		f, err := x.Float64()
		if err != nil {
			return true, fmt.Errorf("want a number, not %v", x)
		}
		v.SetFloat(f)
	default:
		return false, nil
	}
	return true, nil
}

func kindOf(v reflect.Value) string {
	switch {
	case v.Type() == timeType:
		return `a time such as "100ms"`
	case v.Kind() == reflect.String:
		return "a text"
	case v.Kind() == reflect.Bool:
		return "true or false"
	}
	return "a number"
}

// object reads an object, whose keys are v's fields.
func (d *decoder) object(v reflect.Value) error {
	if err := d.open('{', "an object"); err != nil {
		return err
	}
	all := fieldsOf(v)
	var seen []string
	for d.More() {
		t, err := d.token()
		if err != nil {
			return err
		}
		key := t.(string)
		f, err := pick.One("key", key, all, func(f field) string { return f.key })
		if err != nil {
			return err
		}
		if slices.Contains(seen, key) {
			return fmt.Errorf("%s is given twice", key)
		}
		seen = append(seen, key)
		if err := d.value(f.Value); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	_, err := d.token() // the end
	return err
}

// list reads a list.
func (d *decoder) list(v reflect.Value) error {
	if err := d.open('[', "a list"); err != nil {
		return err
	}
	v.SetZero()
	for d.More() {
		one := reflect.New(v.Type().Elem()).Elem()
		if err := d.value(one); err != nil {
			return fmt.Errorf("number %d: %w", v.Len()+1, err)
		}
		v.Set(reflect.Append(v, one))
	}
	_, err := d.token() // the end
	return err
}

// open reads the beginning of an object or a list.
func (d *decoder) open(delim json.Delim, want string) error {
	t, err := d.token()
	if err == nil && t != delim {
		err = fmt.Errorf("want %s, not %v", want, t)
	}
	return err
}

// field is one of a struct, with its key.
type field struct {
	reflect.Value
	key string
}

// fieldsOf returns the fields of a struct that have a key.
func fieldsOf(v reflect.Value) (all []field) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous:
			all = append(all, fieldsOf(v.Field(i))...)
		case key != "":
			all = append(all, field{v.Field(i), key})
		}
	}
	return all
}
