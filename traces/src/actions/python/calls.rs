//! What calls mean, by the last part of their name: one table.

/// What a call does with pictures, text or files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Deed {
    /// Single pixel values, or lists of colours and how often they are there.
    Pixels,
    /// Places where something is: rows, columns, first and last.
    Places,
    /// Structure or data.
    Structure,
    /// Distances from one place to the next.
    Gaps,
    /// A comparison by number.
    Compare,
    /// A picture of the difference.
    Difference,
    /// Text is recognised.
    Ocr,
    /// Extents of text are measured.
    TextExtent,
    /// A region is cut out.
    Crop,
    /// A picture is saved.
    Save,
    /// A text is written.
    WriteText,
    /// Candidate fonts.
    Font,
    /// A command line is started.
    Command,
    /// Values are tried one after another by an optimiser.
    Search,
    /// Random numbers are seeded.
    Seed,
    /// The program text of the answer is checked.
    Check,
    /// Modules are looked for.
    Module,
    /// A page is opened in a driven browser.
    OpenPage,
    /// A picture is taken of it.
    Screenshot,
    /// A program in Python is run.
    RunProgram,
    /// A vector drawing is turned into a picture.
    DrawVector,
}

/// The deed of a call, by its dotted name.
pub(super) fn deed(name: &str) -> Option<Deed> {
    let (head, last) = name.rsplit_once('.').map_or(("", name), |(head, last)| (head, last));
    let base = head.rsplit('.').next().unwrap_or_default();
    Some(match last {
        "getpixel" | "getcolors" | "histogram" | "unique" | "Counter" | "most_common" | "bincount"
        | "calcHist" | "getextrema" | "Stat" | "getdata" | "quantize" | "unique_rows" | "groupby"
        | "value_counts" => Deed::Pixels,
        "flatnonzero" | "nonzero" | "argwhere" | "argmax" | "argmin" | "Canny" | "Sobel" | "Laplacian"
        | "gradient" | "where" | "searchsorted" | "findNonZero" => Deed::Places,
        "getbbox" if base != "font" && !base.ends_with("font") => Deed::Places,
        "label"
            if matches!(base, "" | "ndi" | "ndimage" | "measure" | "morphology" | "scipy" | "sn" | "nd") =>
        {
            Deed::Structure
        }
        "connectedComponents"
        | "connectedComponentsWithStats"
        | "findContours"
        | "HoughLines"
        | "HoughLinesP"
        | "HoughCircles"
        | "find_objects"
        | "center_of_mass"
        | "regionprops"
        | "regionprops_table"
        | "polyfit"
        | "curve_fit"
        | "linregress"
        | "lstsq"
        | "approxPolyDP"
        | "skeletonize"
        | "minAreaRect"
        | "boundingRect"
        | "KMeans"
        | "kmeans"
        | "DBSCAN"
        | "find_peaks"
        | "hough_line"
        | "hough_line_peaks"
        | "hough_circle"
        | "find_contours"
        | "cornerHarris"
        | "goodFeaturesToTrack"
        | "createLineSegmentDetector"
        | "thin"
        | "minEnclosingCircle"
        | "fitEllipse"
        | "convexHull"
        | "RANSACRegressor"
        | "interp1d"
        | "shortest_path"
        | "Polynomial" => Deed::Structure,
        "diff" if matches!(base, "np" | "numpy") => Deed::Gaps,
        "difference" if base == "ImageChops" || base.is_empty() => Deed::Difference,
        "absdiff" | "subtract_modulo" | "logical_xor" => Deed::Difference,
        "subtract" if matches!(base, "ImageChops" | "cv2") => Deed::Difference,
        "structural_similarity"
        | "ssim"
        | "mean_squared_error"
        | "mse"
        | "peak_signal_noise_ratio"
        | "psnr"
        | "matchTemplate"
        | "match_template"
        | "phase_cross_correlation"
        | "phaseCorrelate"
        | "normalized_root_mse"
        | "array_equal"
        | "allclose"
        | "rms_diff"
        | "findTransformECC"
        | "pixelmatch"
        | "compare_images"
        | "mean_absolute_error" => Deed::Compare,
        "image_to_string" | "image_to_data" | "image_to_boxes" | "readtext" | "tesseract" => Deed::Ocr,
        "getlength"
        | "textlength"
        | "textbbox"
        | "getmask"
        | "get_text_bounding_box"
        | "multiline_textbbox"
        | "textsize"
        | "getsize"
        | "measureText"
        | "get_window_extent" => Deed::TextExtent,
        "getbbox" => Deed::TextExtent,
        "crop" => Deed::Crop,
        "save" | "imwrite" | "imsave" | "savefig" | "write_png" => Deed::Save,
        "write" | "write_text" | "writelines" | "write_bytes" => Deed::WriteText,
        "copy" | "copyfile" | "copy2" | "move" if base == "shutil" => Deed::WriteText,
        "replace" | "rename" if base == "os" => Deed::WriteText,
        "dump" if base == "json" => Deed::WriteText,
        "truetype" | "findfont" | "findSystemFonts" | "load_default" | "TTFont" | "FontProperties"
        | "addfont" | "get_font_names" | "FreeTypeFont" => Deed::Font,
        "run" | "call" | "check_call" | "check_output" | "Popen" | "getoutput" | "getstatusoutput"
            if base == "subprocess" || base == "sp" || base.is_empty() =>
        {
            Deed::Command
        }
        "system" | "popen" if base == "os" => Deed::Command,
        "create_subprocess_exec" | "create_subprocess_shell" => Deed::Command,
        "minimize"
        | "minimize_scalar"
        | "differential_evolution"
        | "brute"
        | "basinhopping"
        | "dual_annealing"
        | "least_squares"
        | "fmin" => Deed::Search,
        "seed" | "default_rng" | "RandomState" | "Random" | "manual_seed" => Deed::Seed,
        "py_compile" | "compile" if base != "re" => Deed::Check,
        "parse" | "HTMLParser" | "feed" | "BeautifulSoup" | "fromstring"
            if matches!(base, "ast" | "html" | "ET" | "etree" | "" | "p" | "parser" | "lxml") =>
        {
            Deed::Check
        }
        "find_spec" | "import_module" | "version" => Deed::Module,
        "goto" | "set_content" => Deed::OpenPage,
        "screenshot" | "pdf" => Deed::Screenshot,
        "run_path" | "exec" | "run_module" | "exec_module" => Deed::RunProgram,
        "svg2png" | "svg2pdf" | "write_pdf" | "svg2rlg" | "renderPM" | "convert_from_path" | "get_pixmap" => {
            Deed::DrawVector
        }
        _ => return None,
    })
}
