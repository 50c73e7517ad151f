// broker/ctl/discover/json_listing.cpp -- reads the JSON of amd-smi, rocm-smi and xpu-smi.
//
//   amd-smi list [-e], static  [{"gpu":0,"node_id":1,"uuid":…,"hip_uuid":…,"asic":…,"vram":…}], or
//                              {"gpu_data":[the same]}
//   rocm-smi                   {"card0":{"Unique ID":…,"Card Series":…,"VRAM Total Memory (B)":…}}
//   xpu-smi discovery          {"device_list":[{"device_id":0,"pci_bdf_address":…,"uuid":…}]}
//   xpu-smi discovery -d 0     {"device_id":0,"memory_physical_size_byte":…}
//
// Documents of one tool are put together by the device's number. The runtime's index is another
// one: ROCr counts by KFD node, and Level Zero, as our pools have it, by PCI address.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "broker/config/quantity.hpp"
#include "broker/ctl/discover/listing.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/subcommand.hpp"

namespace dibs::ctl {

namespace {

using Json = nlohmann::json;

// The first of these members that is a text or a whole number; empty: none is.
std::string word_of(const Json& device, std::initializer_list<const char*> paths) {
    for (const char* path : paths) {
        const Json::json_pointer pointer(path);
        if (!device.contains(pointer)) continue;
        const Json& found = device[pointer];
        if (found.is_number_unsigned()) return std::to_string(found.get<uint64_t>());
        if (found.is_string() && found != "N/A") return found.get<std::string>();
    }
    return "";
}

// As ROCr takes it: of a HIP UUID, of a unique id, or of amd-smi's UUID, which has the bytes of the
// unique id around those of the device's type. Empty: the device has none.
std::string rocr_uuid(std::string text) {
    for (char& letter : text)
        letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    if (text.starts_with("gpu-")) text.erase(0, 4);
    if (text.starts_with("0x")) text.replace(0, 2, 18 - std::min<size_t>(text.size(), 18), '0');
    if (text.size() == 36) text = text.substr(0, 2) + text.substr(21, 2) + text.substr(24);
    const bool fits = text.size() == 16 && text.find_first_not_of('0') != std::string::npos &&
                      text.find_first_not_of("0123456789abcdef") == std::string::npos;
    return fits ? "GPU-" + text : "";
}

class JsonListing {
  public:
    explicit JsonListing(const std::string& source) : source_(source) {}

    void take(const Json& document) {
        const bool amd = document.is_array() || document.contains("gpu_data");
        if (amd || document.contains("device_list")) {
            const Vendor* vendor = amd ? &kAmd : &kIntel;
            if (vendor_ == nullptr) vendor_ = vendor;  // the list may be empty
            const char* key = amd ? "gpu_data" : "device_list";
            for (const Json& one : document.is_array() ? document : document[key])
                take(vendor, word_of(one, {"/gpu", "/device_id"}), one);
            return;
        }
        if (document.contains("device_id")) {
            return take(&kIntel, word_of(document, {"/device_id"}), document);
        }
        bool known = false;
        for (const auto& [key, card] : document.items()) {
            if (!key.starts_with("card")) continue;
            take(&kAmd, key.substr(4), card);
            known = true;
        }
        if (!known) fail("JSON without \"gpu\", \"card0\" or \"device_list\"");
    }

    [[nodiscard]] Listing listing() const {
        std::vector<Device> all;
        for (const auto& [number, device] : devices_)
            all.push_back(device);
        std::stable_sort(all.begin(), all.end(), [](const Device& a, const Device& b) {
            return std::pair(a.place.size(), a.place) < std::pair(b.place.size(), b.place);
        });
        Listing listing{vendor_};
        for (const Device& device : all) {
            Gpu& gpu = listing.gpus.emplace_back(device.gpu);
            gpu.index = std::to_string(listing.gpus.size() - 1);
            // Parts of a GPU may have the same UUID, which then names none of them.
            const auto same = [&](const Device& one) { return one.gpu.uuid == device.gpu.uuid; };
            if (std::count_if(all.begin(), all.end(), same) != 1) gpu.uuid.clear();
        }
        return listing;
    }

  private:
    struct Device {
        Gpu gpu{};
        std::string place{};  // in the order in which the runtime counts
    };

    [[noreturn]] void fail(const std::string& what) const {
        throw Failure(kExitFailed, source_ + ": " + what + kListings);
    }

    void take(const Vendor* vendor, const std::string& word, const Json& one) {
        if (vendor_ != nullptr && vendor_ != vendor) fail("JSON of two vendors");
        vendor_ = vendor;
        const auto number = parse_number(word, {});
        if (!number) fail("JSON of a device without its number");
        if (!one.is_object()) fail("\"" + word + "\" is no object of JSON");
        auto& [gpu, place] = devices_[*number];
        const std::string named = word_of(one, {"/hip_uuid", "/uuid", "/Unique ID"});
        const std::string uuid = vendor == &kAmd ? rocr_uuid(named) : named;
        if (is_plain(uuid)) gpu.uuid = uuid;
        const std::string at = word_of(one, {"/node_id", "/Node ID", "/pci_bdf_address"});
        if (!at.empty()) place = at;
        std::string name =
            word_of(one, {"/asic/market_name", "/Card Series", "/Card series", "/device_name"});
        for (char& letter : name)
            if (!is_plain({&letter, 1})) letter = ' ';
        if (is_plain(name)) gpu.name = name;
        const bool in_mib = word_of(one, {"/vram/size/unit"}) == "MB";
        const char* path = in_mib ? "/vram/size/value" : "/VRAM Total Memory (B)";
        const auto size = parse_number(word_of(one, {path, "/memory_physical_size_byte"}), {});
        if (size) gpu.memory_mib = in_mib ? *size : *size >> 20U;
    }

    const std::string& source_;
    const Vendor* vendor_ = nullptr;
    std::map<uint64_t, Device> devices_;
};

}  // namespace

Listing read_json_listing(const std::string& text, const std::string& source, int64_t line) {
    JsonListing listing(source);
    std::istringstream in(text);
    std::streamoff start = 0;
    try {
        while (!(in >> std::ws).eof()) {
            start = in.tellg();
            Json document;
            in >> document;
            listing.take(document);
        }
    } catch (const Json::exception& error) {
        const auto* unfit = dynamic_cast<const Json::parse_error*>(&error);
        const size_t at = static_cast<size_t>(start) + (unfit == nullptr ? 1 : unfit->byte) - 1;
        const std::string before = text.substr(0, at);
        line += std::count(before.begin(), before.end(), '\n');
        throw Failure(kExitFailed,
                      source + ":" + std::to_string(line) + ": this is no JSON" + kListings);
    }
    return listing.listing();
}

}  // namespace dibs::ctl
