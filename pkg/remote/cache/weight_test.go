package cache

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
	"unsafe"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// Strangers write what manifests say: text that is not weighed is memory that nobody
// pays for.
func TestEveryStringOfAnEntryIsWeighed(t *testing.T) {
	const long = 1 << 16
	text := strings.Repeat("x", long)
	fields := 0
	var grow func(path string, v reflect.Value, weigh func() uint32)
	grow = func(path string, v reflect.Value, weigh func() uint32) {
		if !v.CanSet() { // a field that is not exported, such as the signer
			v = reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).Elem()
		}
		switch v.Kind() {
		case reflect.String:
			fields++
			v.SetString(text)
			require.GreaterOrEqual(t, weigh(), uint32(long), "%s is not weighed", path)
			v.SetString("")
		case reflect.Struct:
			if v.Type() == reflect.TypeFor[time.Time]() { // its zone is the program's
				return
			}
			for i := range v.NumField() {
				grow(path+"."+v.Type().Field(i).Name, v.Field(i), weigh)
			}
		case reflect.Pointer:
			v.Set(reflect.New(v.Type().Elem()))
			grow(path, v.Elem(), weigh)
			v.SetZero()
		case reflect.Slice:
			if v.Type().Elem().Kind() == reflect.Uint8 {
				fields++
				v.SetBytes([]byte(text))
				require.GreaterOrEqual(t, weigh(), uint32(long), "%s is not weighed", path)
				v.SetZero()
				return
			}
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			grow(path+"[]", v.Index(0), weigh)
			v.SetZero()
		case reflect.Map:
			fields++
			if elem := v.Type().Elem(); elem.Kind() == reflect.Slice {
				for _, pair := range [][2]int{{long, 0}, {0, long}} {
					v.Set(reflect.MakeMap(v.Type()))
					v.SetMapIndex(reflect.ValueOf(text[:pair[0]]).Convert(v.Type().Key()), reflect.MakeSlice(elem, pair[1], pair[1]))
					require.GreaterOrEqual(t, weigh(), uint32(long), "%s is not weighed", path)
				}
				if elem.Elem().Kind() == reflect.Struct {
					list := reflect.MakeSlice(elem, 1, 1)
					v.SetMapIndex(reflect.Zero(v.Type().Key()), list)
					grow(path+"[]", list.Index(0), weigh)
				}
				v.SetZero()
				return
			}
			for _, pair := range [][2]string{{text, ""}, {"", text}} {
				v.Set(reflect.MakeMap(v.Type()))
				v.SetMapIndex(reflect.ValueOf(pair[0]), reflect.ValueOf(pair[1]))
				require.GreaterOrEqual(t, weigh(), uint32(long), "%s is not weighed", path)
			}
			v.SetZero()
		}
	}
	key, entry := &verify.Key{}, &verify.Entry{}
	of := func() uint32 { return weigh(*key, *entry) }
	grow("Key", reflect.ValueOf(key).Elem(), of)
	grow("Entry", reflect.ValueOf(entry).Elem(), of)
	require.Greater(t, fields, 25)
}

func TestFactsAreWeighedHoweverTheyNest(t *testing.T) {
	const long = 1 << 16
	text := strings.Repeat("x", long)
	for _, facts := range []any{text, []any{text}, []string{text}, map[string]string{"a": text}, []map[string]any{{"a": map[string]any{"b": []any{text}}}},
		fmt.Errorf("%s", text)} {
		entry := verify.Entry{Findings: []policy.Finding{{Extensions: map[string]any{"facts": facts}}}}
		require.GreaterOrEqual(t, weigh(verify.Key{}, entry), uint32(long), "%T", facts)
	}
	require.Less(t, weigh(verify.Key{}, verify.Entry{Descriptor: ocispec.Descriptor{Size: 1 << 40}}), uint32(1<<12))
}
