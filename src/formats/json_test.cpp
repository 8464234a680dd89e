#include "formats/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rlx/error.h"

namespace rlx {
namespace {

TEST(Json, KnowsWhereEachValueStands) {
  const std::string_view text = R"( {"a" : 12, "b":[true , "x", -3,{"c":null}],"d":1.5e1} )";
  const Json doc = Json::parse(text);
  const auto at = [&](std::string_view token) { return text.find(token); };
  EXPECT_EQ(doc.offset(), 1U);
  EXPECT_EQ(doc.at("a", "doc").offset(), at("12"));
  EXPECT_EQ(doc.at("a", "doc").integer("a"), 12);
  const auto b = doc.at("b", "doc").items("b");
  ASSERT_EQ(b.size(), 4U);
  EXPECT_EQ(b[0].offset(), at("true"));
  EXPECT_EQ(b[1].offset(), at("\"x\""));
  EXPECT_EQ(b[2].offset(), at("-3"));
  EXPECT_EQ(b[2].integer("b"), -3);
  EXPECT_EQ(b[3].offset(), at("{\"c"));
  EXPECT_EQ(b[3].members("b")[0].offset, at("\"c\""));
  EXPECT_TRUE(b[3].at("c", "b").is_null());
  EXPECT_EQ(doc.members("doc")[2].offset, at("\"d\""));
  EXPECT_EQ(doc.at("d", "doc").number("d"), 15.0);
  EXPECT_EQ(doc.find("e", "doc"), nullptr);
}

std::string nested(std::size_t depth) {
  std::string text(depth, '[');
  text.append(depth, ']');
  return text;
}

struct Bad {
  std::string text;
  std::uint64_t offset;
  std::string message;
};

TEST(Json, RefusesBadTextWithItsOffset) {
  const std::vector<Bad> cases = {
      {"", 0, "not valid json: syntax error"},
      {"{\"a\":}", 5, "unexpected '}'"},
      {"[1,2", 4, "unexpected end of input"},
      {"{} x", 3, "not valid json"},
      {"[\"\xff\"]", 2, "not valid json"},
      {"[1e999]", 5, "not valid json"},
      {"{\"a\":1,\"b\":2,\"a\":3}", 13, "key 'a' is given twice"},
      {nested(65), 64, "nested deeper than 64"},
      {nested(1000000), 64, "nested deeper than 64"},
  };
  for (const Bad& bad : cases) {
    try {
      Json::parse(bad.text);
      ADD_FAILURE() << bad.text.substr(0, 40);
    } catch (const FormatError& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(bad.message));
      EXPECT_EQ(error.offset(), bad.offset) << error.what();
    }
  }
  EXPECT_NO_THROW(Json::parse(nested(64)));
}

TEST(Json, AccessorsSayWhatWasFoundAndExpected) {
  const Json doc = Json::parse(R"([18446744073709551615, -1, "s", 1.5])");
  const auto v = doc.items("doc");
  const auto message = [](auto call) -> std::string {
    try {
      call();
    } catch (const FormatError& error) {
      return error.what();
    }
    return "nothing";
  };
  EXPECT_EQ(message([&] { v[0].natural("size"); }),
            "size is 18446744073709551615, expected an integer from 0 to 2^63 - 1 (at byte 1)");
  EXPECT_EQ(message([&] { v[1].natural("size"); }),
            "size is -1, expected an integer from 0 to 2^63 - 1 (at byte 23)");
  EXPECT_EQ(message([&] { v[2].boolean("flag"); }),
            "flag is 's', expected true or false (at byte 27)");
  EXPECT_EQ(message([&] { v[3].integer("n"); }),
            "n is 1.5, expected an integer of 64 bits (at byte 32)");
  EXPECT_EQ(message([&] { doc.at("k", "config"); }),
            "config is an array, expected an object (at byte 0)");
  EXPECT_EQ(message([&] { Json::parse("{}").at("k", "config"); }),
            "config has no key 'k' (at byte 0)");
}

}  // namespace
}  // namespace rlx
