-- The part of wrk's API that is Lua itself.

wrk = { scheme = "http", host = "localhost", method = "GET", path = "/", headers = {} }

function wrk.resolve(host, service)
   wrk.addrs = {}
   for _, addr in ipairs(wrk.lookup(host, service)) do
      if wrk.connect(addr) then wrk.addrs[#wrk.addrs + 1] = addr end
   end
end

function wrk.setup(thread)
   thread.addr = wrk.addrs[1]
   if type(setup) == "function" then setup(thread) end
end

function wrk.init(args)
   if not wrk.headers["Host"] then
      local host = wrk.host:find(":", 1, true) and "[" .. wrk.host .. "]" or wrk.host
      wrk.headers["Host"] = wrk.port and host .. ":" .. wrk.port or host
   end
   if type(init) == "function" then init(args) end
   local request = wrk.format()
   function wrk.request() return request end
end

local concat = table.concat

function wrk.format(method, path, headers, body)
   headers = headers or wrk.headers
   body = body or wrk.body
   headers["Host"] = headers["Host"] or wrk.headers["Host"]
   headers["Content-Length"] = body and #body
   local lines, n = { (method or wrk.method) .. " " .. (path or wrk.path) .. " HTTP/1.1" }, 1
   for name, value in pairs(headers) do
      n = n + 1
      lines[n] = name .. ": " .. tostring(value)
   end
   lines[n + 1] = ""
   lines[n + 2] = body or ""
   return concat(lines, "\r\n")
end

local format, unpack = string.format, unpack

-- As in LuaJIT, %s takes any value.
function string.format(...)
   local ok, text = pcall(format, ...)
   if ok then return text end
   local args = { ... }
   for i = 2, select("#", ...) do
      local kind = type(args[i])
      if kind ~= "string" and kind ~= "number" then args[i] = tostring(args[i]) end
   end
   local again, shown = pcall(format, unpack(args, 1, select("#", ...)))
   if again then return shown end
   error(text, 2)
end

-- Output appears in order with gake's own.
io.stdout:setvbuf("line")

-- What gake calls for each request: the globals of that moment.
local next_request = function()
   if type(request) == "function" then return request() end
   return wrk.request()
end

local on_response = function(status, body, ...)
   local headers, flat = {}, { ... }
   for i = 1, #flat, 2 do headers[flat[i]] = flat[i + 1] end
   response(status, headers, body)
end

return next_request, on_response
